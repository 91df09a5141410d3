"""`spak export RUN`: a run as one file, lossless, with a statement in front, or in the shapes of others."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TypeVar

import click

from spak.cli import common

if TYPE_CHECKING:
    from spak.ledger.verify import Footer
    from spak.ports import Ledger


T = TypeVar("T")
PACK = "pack"
SHAPES = click.Choice([PACK, "events", "aep", "items", "steps"])


@click.command()
@click.argument("run", default="latest")
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), help="The file to write; standard output if not given."
)
@click.option(
    "--as",
    "shape",
    type=SHAPES,
    help="Write it as a pack, as events, as AEP registers, as Open Responses items or as tuples of steps.",
)
@click.option(
    "--sign", "key", metavar="NAME", help="With --as pack: sign the statement with this key of yours."
)
@click.option(
    "--proof", type=click.Path(path_type=Path), help="With --as pack: the proof of `spak ledger prove RUN`."
)
@common.runs_option
@common.json_option
def command(
    run: str,
    output: Path | None,
    shape: str | None,
    key: str | None,
    proof: Path | None,
    runs_dir: Path | None,
    as_json: bool,
) -> int:
    """Write RUN into one file with a footer, so that it can be checked and imported anywhere.

    With --as pack a statement of the run that ended comes first, for spak verify-pack and tools of others.
    With another --as it is one JSON object a line in that shape, made from the ledger alone; such a file
    cannot be imported.
    """
    from spak.errors import UsageError
    from spak.ledger.files import FileLedgers
    from spak.runner.views.report import plural

    root, name = common.find_run(run, runs_dir)
    output = None if output == Path("-") else output
    if shape != PACK and (key is not None or proof is not None):
        raise UsageError("usage.arguments", "--sign and --proof are of a pack", "add --as pack")
    if shape not in (None, PACK):
        return _shaped(root, name, shape, output, as_json)
    if as_json and output is None:
        raise UsageError("usage.arguments", "--json needs --output", "the run itself goes to standard output")
    files = _keep_files(root, name)
    reader = FileLedgers(root).reader(name)
    write = _writing(shape == PACK, key, proof)
    try:
        footer = (
            write(reader, common.output())
            if output is None
            else _aside(output, lambda stream: write(reader, stream))
        )
    finally:
        reader.close()
    if as_json:
        common.emit(
            {
                "run": footer.run,
                "count": footer.count,
                "head": footer.head,
                "blobs": footer.blobs,
                "file": str(output),
                "holds": files,
            }
        )
    elif output is not None:
        common.say(f"{plural(footer.count, 'record')} and {plural(footer.blobs, 'blob')} in {output}")
        common.say(_holds(files))
        common.say(f"next: spak {'verify-pack' if shape == PACK else 'ledger verify'} {output}")
    return 0


def _writing(as_pack: bool, key: str | None, proof: Path | None) -> Callable[[Ledger, BinaryIO], Footer]:
    """What writes the run into a stream."""
    from spak.ledger.export import export

    if not as_pack:
        return export
    from spak.cli import keys
    from spak.ledger import pack

    private = None if key is None else keys.load(key).private
    log = None if proof is None else common.read_text(proof)
    return lambda reader, stream: pack.write(reader, stream, private, log)


def _shaped(root: Path, name: str, shape: str, output: Path | None, as_json: bool) -> int:
    """The run in another shape: lines, or with --json one document."""
    from spak import canon
    from spak.ledger.files import FileLedgers
    from spak.runner.views.report import plural

    reader = FileLedgers(root).reader(name)
    try:
        found = _lines(shape, reader)
        about = {"run": name, "as": shape}
        if output is not None:
            count = _aside(output, lambda stream: _written(found, stream))
            file = {**about, "count": count, "file": str(output)}
            common.emit(file) if as_json else common.say(f"{plural(count, 'line')} in {output}")
        elif as_json:
            listed = list(found)
            common.emit({**about, "count": len(listed), "lines": listed})
        else:
            for line in found:
                common.out(canon.dumps(line).decode())
    finally:
        reader.close()
    return 0


def _lines(shape: str, reader: Ledger) -> Iterator[dict[str, Any]]:
    from spak.runner.views.aep import snapshots
    from spak.runner.views.events import events
    from spak.runner.views.items import items
    from spak.runner.views.steps import steps

    records = (record for record, _ in reader.read())
    if shape == "aep":
        return snapshots(records)
    return {"events": events, "items": items, "steps": steps}[shape](records, reader.blobs)


def _written(lines: Iterable[dict[str, Any]], stream: BinaryIO) -> int:
    from spak import canon

    count = 0
    for count, line in enumerate(lines, start=1):  # noqa: B007  the number of lines is wanted afterwards
        stream.write(canon.dumps(line) + b"\n")
    return count


def _keep_files(root: Path, name: str) -> dict[str, Any]:
    """The files of a run that has not ended become blobs of it, so that it can go on wherever it is imported.
    Gives how many files that are, and which of them are of secrets.

    Without them the export is still whole: one of a run that is under way, or whose store is gone.
    """
    from spak.errors import UserError
    from spak.files.disk import Disk
    from spak.kernel.replay import replay
    from spak.ledger.files import FileLedgers
    from spak.workspace import Workspace
    from spak.workspace.secret_nodes import secret_files
    from spak.workspace.store import Store
    from spak.workspace.tree import load
    from spak.workspace.unpack import items_of

    none: dict[str, Any] = {"files": 0, "secrets": []}
    ledgers, folder = FileLedgers(root), root / name
    try:
        reader = ledgers.reader(name)
        state = replay(record for record, _ in reader.read()).state
        if state.ended or not (folder / "store").is_dir():
            return none
        space = Workspace(folder / "workspace", folder / "store")
        with ledgers.open(name) as ledger:
            space.push(state.r3, ledger.blobs)
        tree = load(Store(folder / "store", Disk()), state.r3)
        return {"files": sum(1 for _ in items_of(tree)), "secrets": sorted(secret_files(tree))}
    except UserError as error:
        common.say(f"spak: the files of the run are not in the export: {error.message}")
        return none


def _holds(files: dict[str, Any]) -> str:
    """What of it should not be given to everybody."""
    from spak.runner.views.report import plural

    texts = "it holds prompts, answers and outputs whole, without known secrets"
    if not files["files"]:
        return texts
    secrets = "".join(f"\n  a file of secrets: {path!a}" for path in files["secrets"])
    return f"{texts}, and {plural(files['files'], 'file')} of the workspace as they are{secrets}"


def _aside(output: Path, write: Callable[[BinaryIO], T]) -> T:
    """The whole file, or none: written aside and renamed."""
    from spak.errors import UsageError

    aside = output.with_name(output.name + ".part")
    try:
        try:
            with aside.open("wb") as stream:
                made = write(stream)
                stream.flush()
                os.fsync(stream.fileno())
            aside.replace(output)
        except BaseException:
            aside.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise UsageError(
            "usage.file", f"{output}: {error.strerror}", "check the path, its rights and the space"
        ) from error
    return made
