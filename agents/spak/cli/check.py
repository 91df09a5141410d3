"""`spak check FILE...`: parse and check specs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from spak.cli import common


@click.command()
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--strict", is_flag=True, help="Warnings count as errors.")
@click.option(
    "--format",
    "layout",
    type=click.Choice(["text", "json", "sarif"]),
    default="text",
    help="What is printed.",
)
@common.json_option
def command(files: tuple[Path, ...], strict: bool, layout: str, as_json: bool) -> int:
    """Check FILES. Exit 0 if no error was found (with --strict: no warning), else 3. A folder stands for
    every .spak file below it; `-` reads standard input."""
    from spak import config
    from spak.cli.fmt import STDIN, read, specs
    from spak.kernel.foresee import foresee
    from spak.lang import parse
    from spak.lang.check import examine
    from spak.lang.checks.evolving import check_blocks
    from spak.lang.checks.policy import check_law, policy_file
    from spak.lang.diagnostics import in_order
    from spak.lang.imports import resolve
    from spak.lang.spec_files import folder_reader
    from spak.runner.laws import for_spec

    as_json = as_json or layout == "json"
    quiet = as_json or layout == "sarif"
    catalog, chosen = common.catalog(), config.settings()
    above = config.law(chosen)
    bad = {"error", "warning"} if strict else {"error"}
    documents: list[dict[str, Any]] = []
    runnable: list[Path] = []
    for file in specs(files):
        whole = resolve(parse(read(file), str(file)), folder_reader(file))
        made = examine(whole.parsed.spec, catalog)
        if file != STDIN:
            check_blocks(made, folder_reader(file.resolve().with_suffix("") / file.name))
        its = for_spec(above, whole.parsed.text, catalog.tools)
        law = (*check_law(whole, its), *foresee(made, whole, its, chosen.approvers))
        found = in_order([*whole.parsed.diagnostics, *made.report.found, *law])
        ok = not any(item.severity in bad for item in found)
        if file != STDIN and not any(item.code == "lang.empty" for item in found):
            runnable.append(file)
        documents.append({"file": str(file), "ok": ok, "diagnostics": [item.to_json() for item in found]})
        if not quiet:
            texts = {**whole.texts, **policy_file(whole)}
            common.show_diagnostics(found, whole.parsed.text, str(file), texts)
            common.say(f"{file}: {'ok' if ok else 'not ok'}")
    all_ok = all(document["ok"] for document in documents)
    if layout == "sarif":
        from spak.lang.sarif import sarif

        common.emit(sarif(documents))
    elif as_json:
        common.emit({"files": documents})
    elif not all_ok:
        common.say("next: fix what is marked and check again")
    elif runnable:
        common.say(f"next: spak run {runnable[0]}")
    return 0 if all_ok else 3
