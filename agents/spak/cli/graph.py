"""`spak graph FILE`: the task graph of a spec, or the difference of two, drawn or as data."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from spak.cli import common
from spak.errors import UsageError

if TYPE_CHECKING:
    from spak.lang.graph import Layout
    from spak.lang.imports import Resolved

FORMATS = ("svg", "json", "mermaid", "dot")
SUFFIXES = {
    ".svg": "svg",
    ".json": "json",
    ".mmd": "mermaid",
    ".mermaid": "mermaid",
    ".dot": "dot",
    ".gv": "dot",
}


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--format", "form", type=click.Choice(FORMATS), help="What to write (svg).")
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False), help="Write to this file.")
@click.option(
    "--compare", type=click.Path(path_type=Path), metavar="OLD", help="Draw what changed since OLD."
)
@common.json_option
def command(file: Path, form: str | None, output: Path | None, compare: Path | None, as_json: bool) -> int:
    """Draw the task graph of FILE (`-` is standard input) as far as it parses. Exit 3 if it does not parse
    completely."""
    from spak.lang.graph import graph_difference, graph_of, lay_out, to_json

    kind = form or (SUFFIXES.get(output.suffix.lower(), "svg") if output else "json" if as_json else "svg")
    if as_json and output is None and kind != "json":
        hint = "name a file with -o, or leave out one of them"
        raise UsageError("usage.arguments", f"--json prints the graph as JSON, not as {kind}", hint)
    if str(file) == str(compare) == "-":
        raise UsageError("usage.arguments", "standard input can not be both specs", "name a file for one")
    _spare([file, *([compare] if compare else [])], output)
    specs = [_read(path) for path in (file, compare) if path is not None]
    new = specs[0].parsed.spec
    if compare is None:
        layout = lay_out(graph_of(new))
    else:
        from spak.lang.diff import compare as compared

        old = specs[1].parsed.spec
        layout = lay_out(graph_difference(old, new, compared(old, new).renames))
    ok = all(whole.parsed.ok for whole in specs)
    found = [
        {"file": whole.parsed.name, **item.to_json()} for whole in specs for item in whole.parsed.diagnostics
    ]
    document: dict[str, Any] = {"file": str(file), "ok": ok, "diagnostics": found, **to_json(layout)}
    if compare is not None:
        document["compare"] = str(compare)
    if output is not None:
        output.write_bytes(_content(kind, layout, document))
        document["output"] = str(output)
    if as_json:
        common.emit(document)
    elif output is None:
        click.echo(_content(kind, layout, document), nl=False)
    for whole in specs:
        parsed = whole.parsed
        common.show_diagnostics(parsed.diagnostics, parsed.text, parsed.name, whole.texts)
    _summary(layout, output)
    return 0 if ok else 3


def _read(path: Path) -> Resolved:
    """A spec with what it imports; its files are looked for beside it, those of standard input here."""
    from spak.cli.fmt import read
    from spak.lang import parse
    from spak.lang.imports import resolve
    from spak.lang.spec_files import folder_reader

    return resolve(parse(read(path), str(path)), folder_reader(path))


def _spare(specs: list[Path], output: Path | None) -> None:
    """Never draw over what is drawn."""
    for path in specs:
        if output is not None and output.exists() and path.exists() and output.samefile(path):
            hint = "name another file with -o"
            raise UsageError("usage.arguments", f"{output} is the spec: it would be overwritten", hint)


def _content(kind: str, layout: Layout, document: dict[str, Any]) -> bytes:
    import json

    from spak.lang.graph import to_dot, to_mermaid, to_svg

    if kind == "svg":
        text = to_svg(layout)
    elif kind == "mermaid":
        text = to_mermaid(layout.graph)
    elif kind == "dot":
        text = to_dot(layout.graph)
    else:
        text = json.dumps(document, indent=2) + "\n"
    return text.encode()


def _summary(layout: Layout, output: Path | None) -> None:
    graph = layout.graph
    missing = [node.name for node in graph.nodes if node.kind == "missing" and node.change != "removed"]
    tasks = sum(node.kind != "missing" for node in graph.nodes)
    if not graph.nodes:
        common.say("no task: nothing to draw")
        return
    parts = [f"{tasks} task{'' if tasks == 1 else 's'}"]
    parts += [f"{len(graph.edges)} edge{'' if len(graph.edges) == 1 else 's'}"]
    if layout.different:
        changes = [node.change for node in graph.nodes] + [edge.change for edge in graph.edges]
        for change in ("added", "removed", "changed", "moved"):
            count = changes.count(change)
            parts += [f"{count} {change}"] if count else []
        if len(parts) == 2:
            parts.append("no change")
    common.say((f"{output}: " if output else "") + ", ".join(parts))
    if missing:
        common.say(
            f"missing: {', '.join(missing[:10])}{' ...' if len(missing) > 10 else ''}; spak check shows where"
        )
