"""Every error that SPAK raises, one base, a stable code per leaf.

    SpakError
    ├── UserError            the caller can fix it; `hint` says how
    │   ├── UsageError       usage.*      exit 2  wrong call, missing or unreadable file
    │   ├── SpecError        lang.*       exit 3  diagnostics of a spec or a policy
    │   ├── EditRefused      edit.*       exit 1  an edit of a spec that can not be made
    │   ├── LedgerError      ledger.*     exit 1  tampered, torn, busy, full, read-only
    │   ├── RunError         run.*        exit 1  the run cannot go on as asked
    │   ├── SuiteError       suite.*      exit 2  a suite or a case that cannot be used
    │   ├── OuterError       outer.*      exit 2  an experiment, a trace or a campaign that cannot be used
    │   └── UnavailableError unavailable.* exit 7 sandbox, model, device or server is not there
    └── BugError             bug.*        exit 70 ours: an invariant of the code does not hold

Refusals and rollbacks of a run are values (records), never exceptions. Each code has a paragraph in
docs/errors.md; tests/test_docs.py compares the two lists.
"""

from __future__ import annotations


class SpakError(Exception):
    """An error with a stable code, a sentence, and a hint that says what to do."""

    exit_code = 1
    run = ""
    """The run that stopped for it and can go on, if there is one."""

    def __init__(self, code: str, message: str, hint: str = "") -> None:
        super().__init__(code, message, hint)  # so that another process can be given it
        self.code = code
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message} [{self.code}]" + (f"\n  hint: {self.hint}" if self.hint else "")


OF_HOST = frozenset(
    {
        *("ledger.busy", "ledger.full", "ledger.io", "ledger.readonly"),
        *("workspace.busy", "workspace.full", "workspace.io", "workspace.readonly"),
    }
)
OF_SPEC = frozenset({"llm.no_price", "llm.too_large", "llm.window"})
"""Refusals of a model that depend on what the spec asks."""


def of_host(error: BaseException) -> bool:
    """Whether the machine, or a server that it talks to, is to blame: later the same may work, and nothing
    is known of the spec that ran."""
    if isinstance(error, UnavailableError):
        return error.code not in OF_SPEC
    return isinstance(error, UserError) and error.code in OF_HOST


class UserError(SpakError):
    """Something that the caller can fix."""


class UsageError(UserError):
    """A command, an argument or a setting that is wrong."""

    exit_code = 2


class SpecError(UserError):
    """A spec that no Program can be built from; `diagnostics` has every finding (spak.lang.Diagnostic)."""

    exit_code = 3

    def __init__(self, code: str, message: str, hint: str = "", diagnostics: tuple[object, ...] = ()) -> None:
        super().__init__(code, message, hint)
        self.diagnostics = diagnostics


class EditRefused(UserError):
    """An edit whose precondition does not hold; the text is as it was."""

    exit_code = 1


class LedgerError(UserError):
    """A ledger that is missing, busy, damaged or of another version."""

    exit_code = 1


class RunError(UserError):
    """A run that could not go on as asked."""

    exit_code = 1


class SuiteError(UserError):
    """A suite, or a case of one, that cannot be used."""

    exit_code = 2


class OuterError(UserError):
    """A measurement, a candidate or a campaign of the outer loop that cannot go on."""

    exit_code = 2


class UnavailableError(UserError):
    """Something outside that is not there: a backend, a launcher, a tool, a service."""

    exit_code = 7


class BugError(SpakError):
    """A fault of ours."""

    exit_code = 70
