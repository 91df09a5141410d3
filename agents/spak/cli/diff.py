"""`spak diff OLD NEW`: what changed in meaning between two specs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from spak.cli import common
from spak.cli.fmt import STDIN, read
from spak.errors import UsageError


@click.command()
@click.argument("old", type=click.Path(path_type=Path))
@click.argument("new", type=click.Path(path_type=Path))
@common.json_option
def command(old: Path, new: Path, as_json: bool) -> int:
    """Compare OLD and NEW, a spec or a diff of OLD, by meaning.

    Exit 0 if they mean the same, 1 if not, 3 if one does not parse.
    """
    from spak.lang import parse
    from spak.lang.diff import compare, show
    from spak.lang.imports import resolve
    from spak.lang.spec_files import folder_reader
    from spak.patch import apply_to

    if old == new == STDIN:
        raise UsageError("usage.arguments", "standard input can not be both specs", "name a file for one")
    before = parse(read(old), str(old))
    after = parse(read(new), str(new))
    if not after.ok and isinstance(made := apply_to(after.text, before.text), str):
        after = parse(made, str(new))
    whole = [resolve(one, folder_reader(path)) for one, path in ((before, old), (after, new))]
    document: dict[str, Any] = {"old": str(old), "new": str(new)}
    if not all(one.parsed.ok for one in whole):
        errors = [
            (one, [item for item in one.parsed.diagnostics if item.severity == "error"]) for one in whole
        ]
        document["diagnostics"] = [
            {"file": one.parsed.name, **item.to_json()} for one, wrong in errors for item in wrong
        ]
        if as_json:
            common.emit(document)
        for one, wrong in errors:
            common.show_diagnostics(wrong, one.parsed.text, one.parsed.name, one.texts)
        return 3
    found = compare(whole[0].parsed, whole[1].parsed, common.catalog())
    if as_json:
        common.emit({**document, **found.to_json()})
    else:
        common.out(show(found), nl=False)
    return 0 if found.equal else 1
