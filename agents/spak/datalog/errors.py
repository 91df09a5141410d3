"""What the policy engine raises. Whoever asks for a permission denies on any of these."""

from __future__ import annotations

from spak.errors import UserError


class PolicyError(UserError):
    """A policy that does not load (`policy.invalid`, with every finding) or a fault while it runs."""

    exit_code = 3

    def __init__(self, code: str, message: str, hint: str = "", diagnostics: tuple[object, ...] = ()) -> None:
        super().__init__(code, message, hint)
        self.diagnostics = diagnostics


class NoProof(PolicyError):
    """A proof was wanted of what does not hold: nothing is wrong with the policy."""

    exit_code = 1

    def __init__(self, message: str, hint: str) -> None:
        super().__init__("policy.no_proof", message, hint)


class PolicyLimit(UserError):
    """A limit of steps, facts or size was reached; there is no decision."""

    exit_code = 3

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__("policy.limit", message, hint)
