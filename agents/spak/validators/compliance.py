"""The Compliance validator: does an artifact keep the axioms that a machine can check?

Takes the bytes of an artifact, its name and axioms `{text, check, args}`; gives a Report of what holds, what
is violated and what nobody checked. `spak verify` and the validator share `comply`, which is pure. An axiom
without a CHECK is listed as unchecked and never counted as held, and a report in which nothing was checked
has not passed. The validator asks no model: an axiom with CHECK judge is unchecked in a run, where VALIDATOR
Judge asks, and judged by `spak verify` where a model is configured.

The checks are static: they read the text. `no_import` and `no_call` see names as written and aliases made by
imports, and refuse a dynamic import, but a program that builds a name at run time gets past any of them.
Source: seed 000 section 4.1 (ComplianceVerifier); DESIGN.md section 6.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from spak import schema_parts as parts
from spak.lang.catalog import ValidatorEntry
from spak.lang.schema import violations as violations_of
from spak.ports import MeasureCall, Measurement
from spak.validators import judge, launch, static_checks

MAX_BYTES = 16 << 20
"""An artifact beyond this is not read: `too_large`."""

SCHEMA = parts.members(
    ["artifact"],
    artifact={
        "description": "The file to check: a regular file in the workspace, up to 16 MiB.",
        **parts.PATH,
    },
    axioms=parts.listed(
        "Axioms to check; without it the SYSTEM_MODEL's, but for those that are rules of the policy.",
        {
            "type": "object",
            "required": ["text"],
            "additionalProperties": False,
            "properties": {
                "text": {"type": "string", "maxLength": 4096},
                "check": {"type": "string", "maxLength": 64},
                "args": {"type": "object"},
            },
        },
        256,
        1,
    ),
)


@dataclass(frozen=True, slots=True)
class Violation:
    """One thing wrong: the axiom, its place among the axioms (from 1), and where in the artifact."""

    index: int
    axiom: str
    check: str
    code: str
    message: str
    line: int = 0


@dataclass(frozen=True, slots=True)
class Report:
    """`passed`: at least one axiom was checked and every checked one holds."""

    passed: bool
    violations: tuple[Violation, ...] = ()
    unchecked: tuple[str, ...] = ()
    held: tuple[str, ...] = ()
    judged: tuple[str, ...] = ()
    """Axioms that a model says are kept: listed, and never counted as held."""


def comply(
    artifact: bytes,
    name: str,
    axioms: Sequence[Mapping[str, Any]],
    files: static_checks.Files = static_checks.nowhere,
    ask: Callable[[str, str, str], judge.Verdict | None] | None = None,
) -> Report:
    """The report on an artifact. `name` is its file name; a check that cares takes the language from it.
    `files` gives what the artifact may cite; `ask` gives a model's verdict on a rubric, a text and its name,
    None for an answer that is none. Without it an axiom with CHECK judge is unchecked."""
    violations: list[Violation] = []
    unchecked: list[str] = []
    held: list[str] = []
    judged: list[str] = []
    for index, axiom in enumerate(axioms, start=1):
        text, check = str(axiom.get("text", "")), str(axiom.get("check") or "")
        if not check:
            unchecked.append(text)
            continue
        args = axiom.get("args") or {}
        if check == judge.CHECK and ask is None:
            unchecked.append(text)
            continue
        if check == judge.CHECK and ask is not None:
            findings = _asked(args, artifact, name, ask)
        else:
            findings = static_checks.judge(check, args, artifact, name, files)
        violations += [
            Violation(index, text, check, finding.code, finding.message, finding.line) for finding in findings
        ]
        if not findings:
            (judged if check == judge.CHECK else held).append(text)
    passed = bool(held) and not violations
    return Report(passed, tuple(violations), tuple(unchecked), tuple(held), tuple(judged))


def _asked(
    args: Mapping[str, Any], artifact: bytes, name: str, ask: Callable[[str, str, str], judge.Verdict | None]
) -> list[static_checks.Finding]:
    rubric = args.get("rubric")
    if set(args) != {"rubric"} or not isinstance(rubric, str) or violations_of(judge.RUBRIC, rubric):
        return [
            static_checks.Finding("bad_argument", "judge takes a rubric, a text of up to 8192 characters")
        ]
    if len(artifact) > judge.MAX_BYTES:
        return [static_checks.Finding("too_large", f"more than {judge.MAX_BYTES} bytes")]
    verdict = ask(rubric, artifact.decode("utf-8", "replace"), name)
    if verdict is None:
        return [static_checks.Finding("judge.malformed", "the model's answer is no verdict")]
    if verdict.passed:
        return []
    return [static_checks.Finding("judge.failed", "; ".join(verdict.reasons))]


class Compliance:
    """The validator `Compliance`."""

    entry = ValidatorEntry(
        name="Compliance",
        version=2,
        summary="Checks an artifact against the axioms that have a static CHECK.",
        axioms="axioms",
        schema=SCHEMA,
        triggers=("success", "fail"),
        effect="pure",
    )

    def measure(self, call: MeasureCall) -> Measurement:
        name = str(call.options["artifact"])
        try:
            artifact = static_checks.read(call.workspace, name, MAX_BYTES, call.hides)
        except OSError as error:
            reason = error.strerror or str(error)
            return Measurement("checked", checks=(launch.check("artifact", False, "unreadable", reason),))
        if artifact is None:
            detail = f"more than {MAX_BYTES} bytes"
            return Measurement("checked", checks=(launch.check("artifact", False, "too_large", detail),))
        axioms = call.options.get("axioms", ())
        report = comply(artifact, name, axioms, static_checks.folder_files(call.workspace, call.hides))
        return _measurement(report, name, axioms)


def _measurement(report: Report, name: str, axioms: Sequence[Mapping[str, Any]]) -> Measurement:
    first = {violation.index: violation for violation in reversed(report.violations)}
    checks = []
    for index, axiom in enumerate(axioms, start=1):
        if axiom.get("check") and axiom["check"] != judge.CHECK:
            broken = first.get(index)
            checks.append(
                launch.check(
                    f"axiom.{index}",
                    broken is None,
                    broken.code if broken else "",
                    f"{axiom['text']}: {broken.message}" if broken else str(axiom["text"]),
                )
            )
    if not checks:
        checks.append(launch.check("checked", False, "nothing_checked", "no axiom has a CHECK"))
    return Measurement(
        "checked",
        checks=tuple(checks),
        metrics={
            "violations": len(report.violations),
            "held": len(report.held),
            "unchecked": len(report.unchecked),
        },
        diagnostics=tuple(
            {
                "severity": "error",
                "file": name,
                "line": violation.line,
                "code": violation.code,
                "message": violation.message,
            }
            for violation in report.violations
        ),
        evidence={"unchecked": list(report.unchecked)},
    )
