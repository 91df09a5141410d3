"""`spak fmt FILE...`: the canonical layout of specs and policies, in place."""

from __future__ import annotations

import difflib
import sys
from pathlib import Path
from typing import Any

import click

from spak.cli import common
from spak.cli.rewrite import rewrite
from spak.errors import UsageError, UserError

STDIN = Path("-")
KINDS = (".spak", ".mg")


@click.command()
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--check", is_flag=True, help="Write nothing; exit 1 when a file would change.")
@click.option("--diff", is_flag=True, help="Write nothing; print what would change.")
@common.json_option
def command(files: tuple[Path, ...], check: bool, diff: bool, as_json: bool) -> int:
    """Format FILES, keeping comments. A folder stands for all specs and policies below it; `-` reads standard
    input."""
    if as_json and STDIN in files:
        raise UsageError("usage.arguments", "--json can not be given with -", "name a file")
    documents: list[dict[str, Any]] = []
    worst = 0
    for file in specs(files):
        try:
            document = one(file, check=check, diff=diff, as_json=as_json)
        except UserError as error:
            if list(files) == [file]:
                raise
            worst = max(worst, error.exit_code)
            fields = {"code": error.code, "message": error.message, "hint": error.hint}
            document = {"file": str(file), "ok": False, "changed": False, "diagnostics": [], "error": fields}
            common.say(f"error: {error}")
        else:
            worst = max(worst, 3 if not document["ok"] else 1 if check and document["changed"] else 0)
        documents.append(document)
    if as_json:
        common.emit({"files": documents})
    else:
        summary(documents, written=not (check or diff))
    return worst


def one(file: Path, *, check: bool, diff: bool, as_json: bool) -> dict[str, Any]:
    """One file laid out, written or shown as asked. Raises: UsageError where it can not be."""
    data = read(file)
    made, problems = laid(file, data)
    new = (data.decode(errors="replace") if made is None else made).encode()
    document: dict[str, Any] = {"file": str(file), "ok": made is not None, "changed": False}
    document["diagnostics"] = [item.to_json() for item in problems]
    if made is None:
        return document
    document["changed"] = new != data
    if diff:
        document["diff"] = unified(data.decode(), made, str(file))
        if not as_json:
            put(document["diff"])
    elif file == STDIN and not check:
        put(made)
    elif new != data and not check:
        rewrite(file, data, new)
    return document


def laid(file: Path, data: bytes) -> tuple[str | None, list[Any]]:
    """The text as it should stand, or None and what is wrong, which is shown; .mg is a policy."""
    if file.suffix != ".mg":
        from spak.lang.format import format_text

        made = format_text(data, str(file))
        if made.ok:
            return made.text, []
        errors = [item for item in made.diagnostics if item.severity == "error"]
        common.show_diagnostics(errors, made.text, str(file))
        return None, list(made.diagnostics)
    from spak.datalog.text.layout import format_text as policy_text

    policy = policy_text(common.decoded(data, file), str(file))
    if policy.ok:
        return policy.text, []
    for item in policy.diagnostics:
        if item.severity == "error":
            common.say(item.text())
    return None, list(policy.diagnostics)


def specs(files: tuple[Path, ...]) -> list[Path]:
    """The files that were named; of a folder all .spak and .mg below it. Raises: UsageError `usage.file`."""
    found: list[Path] = []
    for file in files:
        if file == STDIN or not file.is_dir():
            found.append(file)
            continue
        below = sorted(path for path in file.rglob("*") if path.suffix in KINDS and path.is_file())
        if not below:
            raise UsageError(
                "usage.file", f"{file} holds no .spak or .mg file", "name a spec or a folder of specs"
            )
        found += below
    return list(dict.fromkeys(found))


def read(file: Path) -> bytes:
    """The bytes of a file, or of standard input for `-`."""
    if file != STDIN:
        return common.read_input(file)
    data = sys.stdin.buffer.read(common.MAX_INPUT + 1) if sys.stdin is not None else b""
    if len(data) > common.MAX_INPUT:
        raise UsageError(
            "usage.file", f"the input is larger than {common.MAX_INPUT} bytes", "give a smaller one"
        )
    return data


def put(text: str) -> None:
    """A spec's text on standard output: the exact bytes for a file or a pipe, harmless on a terminal."""
    terminal = sys.stdout is not None and sys.stdout.isatty()
    click.echo(common.printable(text) if terminal else text.encode(), nl=False)


def unified(old: str, new: str, name: str) -> str:
    """The change as a unified diff, empty where there is none."""
    lines = difflib.unified_diff(
        old.splitlines(keepends=True), new.splitlines(keepends=True), name, name, n=3
    )
    return "".join(
        line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines
    )


def summary(documents: list[dict[str, Any]], written: bool) -> None:
    """Print a line for each file that changed or would, and how many there are."""
    for document in documents:
        if document["changed"]:
            common.say(f"{document['file']}: {'formatted' if written else 'would change'}")
    changed = sum(document["changed"] for document in documents)
    broken = sum(not document["ok"] for document in documents)
    same = len(documents) - changed - broken
    parts = [f"{changed} {'formatted' if written else 'to format'}", f"{same} as they should be"]
    common.say(", ".join(parts + ([f"{broken} with errors"] if broken else [])))
