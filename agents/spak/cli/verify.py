"""`spak verify --artifact PATH --spec FILE`: an artifact against a spec's axioms, by static checks.

It reads the axioms off the parsed spec and hands them to the pure `spak.validators.compliance`. An axiom
without CHECK is listed as unchecked and never counted as held; where nothing was checked, nothing has passed.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from spak.cli import common
from spak.errors import SpecError

if TYPE_CHECKING:
    from spak.lang import Parsed
    from spak.validators.compliance import Report


@click.command()
@click.option(
    "--artifact", required=True, type=click.Path(path_type=Path), help="The file that is to comply."
)
@click.option("--spec", required=True, type=click.Path(path_type=Path), help="The spec whose axioms count.")
@common.json_option
def command(artifact: Path, spec: Path, as_json: bool) -> int:
    """Check a file against a spec's AXIOMs: 0 if all that have a CHECK hold, 1 if not or none has one."""
    from spak.validators.compliance import MAX_BYTES, comply

    wanted = axioms(spec)
    data = common.read_input(artifact, limit=MAX_BYTES)
    report = comply(data, artifact.name, wanted)
    if as_json:
        common.emit(_document(artifact, spec, report))
    else:
        _print(artifact, report)
    return 0 if report.passed else 1


def axioms(spec: Path) -> list[dict[str, Any]]:
    """Every AXIOM as `{text, check, args}`, `check` empty where there is none.

    Raises: UsageError `usage.file`, SpecError `lang.invalid` with all diagnostics.
    """
    from spak import config
    from spak.lang import check, parse
    from spak.lang.beside import files_beside
    from spak.lang.imports import resolve

    parsed = resolve(parse(common.read_input(spec), str(spec)), files_beside(spec)).parsed
    found = check(parsed, config.catalog())
    if errors := [item for item in found if item.severity == "error"]:
        raise SpecError("lang.invalid", f"{spec} has {len(errors)} errors", f"spak check {spec}", found)
    return list(_axioms(parsed, spec))


def _axioms(parsed: Parsed, spec: Path) -> Iterator[dict[str, Any]]:
    from spak.lang import ast, values
    from spak.lang.report import Report as Findings

    findings = Findings(parsed.spec.source)
    for model in parsed.spec.models():
        for item in model.items:
            if isinstance(item, ast.Axiom):
                body = item.check.body if item.check else None
                args = values.plain_map(body, findings, values.as_text)
                yield {"text": item.text.value, "check": item.check.name if item.check else "", "args": args}
    if findings.errors:
        raise SpecError(
            "lang.invalid", f"{spec}: a CHECK cannot be read", findings.found[0].hint, tuple(findings.found)
        )


def _document(artifact: Path, spec: Path, report: Report) -> dict[str, Any]:
    from dataclasses import asdict

    return {"artifact": str(artifact), "spec": str(spec), **asdict(report)}


def _print(artifact: Path, report: Report) -> None:
    for broken in report.violations:
        where = f"{artifact}:{broken.line}" if broken.line else str(artifact)
        common.say(f"{where}: {broken.message} [{broken.code}]\n  axiom {broken.index}: {broken.axiom}")
    for text in report.held:
        common.say(f"holds: {text}")
    for text in report.unchecked:
        common.say(f"unchecked: {text}")
    if report.passed:
        common.say(f"{artifact}: complies with every axiom that is checked")
    elif report.violations:
        common.say(f"{artifact}: does not comply")
    else:
        common.say('nothing was checked: give an axiom a check, AXIOM "..." CHECK contains { text: "..." }')
