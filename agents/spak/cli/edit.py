"""`spak edit FILE OP...`: typed edits of a spec, each a minimal change of its text."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from spak.cli import common
from spak.cli.fmt import STDIN, put, read, unified
from spak.cli.rewrite import rewrite
from spak.errors import SpecError, UsageError


@click.command(context_settings={"ignore_unknown_options": True})
@click.argument("file", type=click.Path(path_type=Path))
@click.argument("words", nargs=-1, metavar="[OP...]")
@click.option("--ops", "ops_file", type=click.Path(path_type=Path), help="Operations as JSON; - is stdin.")
@click.option("--in-place", is_flag=True, help="Write the file instead of printing it.")
@click.option("--diff", is_flag=True, help="Print the change as a unified diff.")
@common.json_option
def command(
    file: Path, words: tuple[str, ...], ops_file: Path | None, in_place: bool, diff: bool, as_json: bool
) -> int:
    """Apply operations to FILE in order, all or none. Separate them with `,`.

    \b
    spak edit a.spak rename-task tune search
    spak edit a.spak add-task end , add-edge tune timeout end --in-place
    spak edit a.spak "set-goal tune 'Make it faster.'" --diff
    """
    from spak.lang import edit, parse

    if not words and ops_file is None:
        raise UsageError("usage.arguments", "no operation", "spak edit FILE add-task NAME; or --ops FILE")
    if STDIN in (file,) and (in_place or ops_file == STDIN):
        raise UsageError("usage.arguments", "standard input can not be both", "name a file")
    data = read(file)
    parsed = parse(data, str(file))
    many = (*(from_file(ops_file) if ops_file is not None else ()), *edit.read(words))
    try:
        done = edit.apply_all(parsed, many)
    except SpecError:
        common.show_diagnostics(parsed.diagnostics, parsed.text, str(file))
        raise
    if in_place and done.changed:
        rewrite(file, data, done.text.encode())
    if as_json:
        common.emit(document(file, many, done))
    elif diff:
        put(unified(parsed.text, done.text, str(file)))
    elif not in_place:
        put(done.text)
    if not as_json:
        verb = "written" if in_place and done.changed else "changed" if done.changed else "as it was"
        common.say(f"{file}: {verb}, {len(many)} operation{'s' if len(many) > 1 else ''}")
    return 0


def from_file(path: Path) -> tuple[Any, ...]:
    """The operations of a JSON file. Raises: UsageError `usage.file`, EditRefused `edit.*`."""
    import orjson

    from spak.lang.edit import ops_from_json

    try:
        value = orjson.loads(read(path))
    except orjson.JSONDecodeError as error:
        raise UsageError("usage.file", f"{path}: {error}", "operations are a JSON list") from error
    if isinstance(value, dict) and "op" not in value and "ops" in value:
        value = value["ops"]
    return ops_from_json(value)


def document(file: Path, many: tuple[Any, ...], done: Any) -> dict[str, Any]:
    """The result of `spak edit --json`: the ops, the patches in offsets of the text, and the ops that undo
    them."""
    from spak.lang.edit import to_json

    return {
        "file": str(file),
        "changed": done.changed,
        "ops": [to_json(op) for op in many],
        "patches": [{"start": start, "end": end, "text": new} for start, end, new in done.patches],
        "inverse": to_json(done.inverse),
        "text": done.text,
    }
