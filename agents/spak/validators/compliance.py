"""The Compliance validator: does an artifact keep the axioms that a machine can check?

Takes the bytes of an artifact, its name and axioms `{text, check, args}`; gives a Report of what holds, what
is violated and what nobody checked. `spak verify` and the validator share `comply`, which is pure. An axiom
without a CHECK is listed as unchecked and never counted as held, and a report in which nothing was checked
has not passed. It asks no model.

The checks are static: they read the text. `no_import` and `no_call` see names as written and aliases made by
imports, and refuse a dynamic import, but a program that builds a name at run time gets past any of them.
Source: seed 000 section 4.1 (ComplianceVerifier); DESIGN.md section 6.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from spak.lang.catalog import ValidatorEntry
from spak.ports import MeasureCall, Measurement
from spak.validators import launch, static_checks

MAX_BYTES = 16 << 20
"""An artifact beyond this is not read: `too_large`."""

SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["artifact", "axioms"],
    "additionalProperties": False,
    "properties": {
        "artifact": {"type": "string", "minLength": 1, "maxLength": 1024, "pattern": "^[^/]"},
        "axioms": {
            "type": "array",
            "minItems": 1,
            "maxItems": 256,
            "items": {
                "type": "object",
                "required": ["text"],
                "additionalProperties": False,
                "properties": {
                    "text": {"type": "string", "maxLength": 4096},
                    "check": {"type": "string", "maxLength": 64},
                    "args": {"type": "object"},
                },
            },
        },
    },
}


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


def comply(
    artifact: bytes,
    name: str,
    axioms: Sequence[Mapping[str, Any]],
    files: static_checks.Files = static_checks.nowhere,
) -> Report:
    """The report on an artifact. `name` is its file name; a check that cares takes the language from it.
    `files` gives what the artifact may cite."""
    violations: list[Violation] = []
    unchecked: list[str] = []
    held: list[str] = []
    for index, axiom in enumerate(axioms, start=1):
        text, check = str(axiom.get("text", "")), str(axiom.get("check") or "")
        if not check:
            unchecked.append(text)
            continue
        findings = static_checks.judge(check, axiom.get("args") or {}, artifact, name, files)
        violations += [
            Violation(index, text, check, finding.code, finding.message, finding.line) for finding in findings
        ]
        if not findings:
            held.append(text)
    return Report(bool(held) and not violations, tuple(violations), tuple(unchecked), tuple(held))


class Compliance:
    entry = ValidatorEntry(
        name="Compliance",
        version=1,
        summary="Checks an artifact against the axioms that have a static CHECK.",
        schema=SCHEMA,
        triggers=("success", "fail"),
        effect="pure",
    )

    def measure(self, call: MeasureCall) -> Measurement:
        name = str(call.options["artifact"])
        try:
            artifact = static_checks.read(call.workspace, name, MAX_BYTES)
        except OSError as error:
            reason = error.strerror or str(error)
            return Measurement("checked", checks=(launch.check("artifact", False, "unreadable", reason),))
        if artifact is None:
            detail = f"more than {MAX_BYTES} bytes"
            return Measurement("checked", checks=(launch.check("artifact", False, "too_large", detail),))
        axioms = call.options["axioms"]
        report = comply(artifact, name, axioms, static_checks.beside(call.workspace))
        return _measurement(report, name, axioms)


def _measurement(report: Report, name: str, axioms: Sequence[Mapping[str, Any]]) -> Measurement:
    first = {violation.index: violation for violation in reversed(report.violations)}
    checks = []
    for index, axiom in enumerate(axioms, start=1):
        if axiom.get("check"):
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
