"""`spak world index|symbols|impact|tests|record|map|why|search|rename`: questions about a folder of code."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from spak.cli import common
from spak.errors import UsageError

if TYPE_CHECKING:
    from spak.world.ask import Covers, Model

F = TypeVar("F", bound=Callable[..., Any])


@click.group()
def command() -> None:
    """Ask what a code base defines, what depends on what, and which tests a change needs."""


def _folder(function: F) -> F:
    return click.option(
        "--workspace", "folder", type=click.Path(path_type=Path), default=Path(), show_default=True,
        help="The folder of the code.",
    )(function)  # fmt: skip


def _most(function: F) -> F:
    return click.option(
        "--most",
        type=click.IntRange(1, 1_000_000),
        default=200,
        show_default=True,
        help="How many lines are shown.",
    )(function)


@command.command("index")
@click.argument("folder", type=click.Path(path_type=Path), default=Path())
@common.json_option
def index_command(folder: Path, as_json: bool) -> int:
    """Read what changed in FOLDER since the last time. Every other question does so first."""
    with _model(folder) as (model, report):
        covers = model.covers()
        counts = {
            table: model.store.rows(f"SELECT count(*) FROM {table} WHERE tree = ?", [model.tree])[0][0]
            for table in ("link", "site")
        }
    done = {key: getattr(report, key) for key in ("files", "read", "parsed", "linked", "removed")}
    if as_json:
        common.emit(
            {**done, "links": counts["link"], "unresolved": counts["site"], "covers": covers.to_json()}
        )
    else:
        common.out(
            f"{report.files} files, {report.read} read, {report.parsed} parsed, {report.linked} linked:"
            f" {counts['link']} links, {counts['site']} places that could not be followed"
        )
        _covers(covers)
    return 0


@command.command("symbols")
@click.argument("words", metavar="[PATH|NAME|PATH#NAME]", default="")
@_folder
@_most
@common.json_option
def symbols_command(words: str, folder: Path, most: int, as_json: bool) -> int:
    """List the symbols of a file or folder, or those with a name."""
    with _model(folder) as (model, _):
        found = model.target(words) if words else model.symbols()
        covers = model.covers()
    if as_json:
        shown = [
            {
                "symbol": item.id, "kind": item.kind, "visibility": item.visibility, "path": item.path,
                "line": item.line, "end_line": item.end, "signature": item.signature,
            }
            for item in found
        ]  # fmt: skip
        common.emit({"symbols": shown, "covers": covers.to_json()})
        return 0
    for item in found[:most]:
        common.out(
            f"{item.path}:{item.line}  {item.kind} {item.qual}"
            + (item.signature if item.kind == "function" else "")
        )
    _rest(len(found), most)
    _covers(covers)
    return 0


@command.command("impact")
@click.argument("target", metavar="PATH#SYMBOL|PATH|NAME")
@_folder
@_most
@common.json_option
def impact_command(target: str, folder: Path, most: int, as_json: bool) -> int:
    """List what depends on TARGET, directly or through others, nearest first."""
    with _model(folder) as (model, _):
        targets = model.target(target)
        reach = model.impact(targets)
        unknown = model.unknown(targets, reach)
        sites, dynamic = map(sorted, unknown)
        tests = [item.symbol for item in reach if model.is_test(item.symbol)]
        covers = model.covers(unknown.total)
    if as_json:
        common.emit(
            {
                "target": [item.id for item in targets],
                "impacted": [
                    {
                        "symbol": item.symbol,
                        "path": item.path,
                        "line": item.line,
                        "how": item.how,
                        "via": item.via,
                    }
                    for item in reach
                ],
                "tests": tests,
                "may": [{"symbol": caller, "name": name, "line": line} for caller, name, line in sites],
                "dynamic": [{"symbol": caller, "by": by, "line": line} for caller, by, line in dynamic],
                "covers": covers.to_json(),
            }
        )
        return 0
    for item in reach[:most]:
        common.out(f"{item.path}:{item.line}  {_short(item.symbol)}  /{item.how} {_short(item.via)}")
    _rest(len(reach), most)
    for caller, name, line in sites[:20]:
        common.out(f"may: {caller.partition(':')[2].partition('#')[0]}:{line}  {_short(caller)} names {name}")
    for caller, by, line in dynamic[:20]:
        common.out(
            f"dynamic: {caller.partition(':')[2].partition('#')[0]}:{line}  {_short(caller)} uses {by}"
        )
    common.say(f"{len(reach)} symbols, {len(tests)} of them tests")
    _covers(covers)
    return 0


@command.command("why")
@click.argument("caller", metavar="PATH#CALLER")
@click.argument("callee", metavar="PATH#CALLEE")
@_folder
@common.json_option
def why_command(caller: str, callee: str, folder: Path, as_json: bool) -> int:
    """Show why CALLER depends on CALLEE: file, line and rule, derived again from the facts. Exit 1 if it
    does not."""
    from spak.world.ask import RULES

    with _model(folder) as (model, _):
        pairs = [(one.id, other.id) for one in model.target(caller) for other in model.target(callee)]
        found = [(*pair, *edge) for pair in pairs for edge in model.replayed(*pair)]
        covers = model.covers()
    if as_json:
        edges = [
            {
                "caller": one, "callee": other, "how": how, "role": role,
                "path": one.partition(":")[2].partition("#")[0], "lines": list(lines), "rule": RULES[how],
            }
            for one, other, how, role, lines in found
        ]  # fmt: skip
        common.emit({"edges": edges, "covers": covers.to_json()})
        return 0 if found else 1
    for one, other, how, role, lines in found:
        where = one.partition(":")[2].partition("#")[0]
        common.out(f"{where}:{lines[0]}  {_short(one)} {role} {_short(other)}: /{how}, {RULES[how]}")
    if not found:
        common.say(f"{caller} does not depend on {callee} directly, as far as is known")
    _covers(covers)
    return 0 if found else 1


@command.command("tests")
@click.argument("target", metavar="[PATH#SYMBOL|PATH|NAME]", default="")
@_folder
@common.json_option
def tests_command(target: str, folder: Path, as_json: bool) -> int:
    """List the tests that a change of TARGET needs, and the rule that chose them.

    Without TARGET: those that the changes since the recording need (`spak world record`)."""
    from spak.world import rank
    from spak.world.selection import recorded
    from spak.world.selection.recording import Recording

    with _model(folder) as (model, _):
        recording = Recording(model.store, model.root)
        targets = model.target(target) if target else []
        if recording:
            chosen = recorded.tests(model, recording, targets) if target else recorded.since(model, recording)
        elif target:
            static = rank.tests(model, targets)
            chosen = recorded.Selection({static.rule: static.tests})
        else:
            raise UsageError(
                "world.no_recording",
                "nothing is recorded of this folder",
                "name a symbol, or: spak world record",
            )
        covers = model.covers(model.unknown(targets, model.impact(targets)).total if targets else 0)
    if as_json:
        common.emit(
            {
                "target": [item.id for item in targets],
                "rule": chosen.rule,
                "tests": chosen.tests,
                "by": chosen.by,
                "without": [asdict(part) for part in chosen.without],
                "covers": covers.to_json(),
            }
        )
        return 0
    for test in chosen.tests:
        common.out(rank.node(test))
    for part in chosen.without[:20]:
        common.say(f"not by the recording: {part.path}:{part.line}  {part.why}")
    _rest(len(chosen.without), 20, "; --json has them")
    rules = ", ".join(f"{rule} {len(found)}" for rule, found in chosen.by.items())
    common.say(f"{len(chosen.tests)} tests, chosen by the rule {chosen.rule}{f' ({rules})' * (rules != '')}")
    _covers(covers)
    return 0


@command.command("record")
@click.argument("file", type=click.Path(path_type=Path), default=None, required=False, metavar="[FILE]")
@_folder
@common.json_option
def record_command(file: Path | None, folder: Path, as_json: bool) -> int:
    """Keep which test ran which line, from FILE, a data file of coverage.py with contexts (.coverage).

    It comes from a run of all tests: `COVERAGE_CORE=ctrace pytest --cov=. --cov-context=test`."""
    from spak.world.selection import coverage_file, recording

    with _model(folder) as (model, _):
        kept = recording.keep(model, coverage_file.read(file or folder / ".coverage"))
    if as_json:
        common.emit(kept._asdict())
        return 0
    common.out(f"{kept.tests} tests, {kept.files} files that they ran")
    for names, what in ((kept.changed, "changed since"), (kept.unknown, "no test of this folder")):
        for name in names[:5]:
            common.say(f"{what}: {name!a}")
        _rest(len(names), 5, "; --json has them")
    return 0


@command.command("map")
@click.argument("targets", nargs=-1, metavar="[PATH#SYMBOL|PATH|NAME]...")
@click.option("--tokens", type=click.IntRange(20, 1_000_000), default=1000, show_default=True,
              help="How long the map may be.")  # fmt: skip
@_folder
@common.json_option
def map_command(targets: tuple[str, ...], tokens: int, folder: Path, as_json: bool) -> int:
    """Print the signatures that matter most, or matter most to the targets, as many as fit."""
    from spak.world import rank

    with _model(folder) as (model, _):
        starts = [symbol for target in targets for symbol in model.target(target)]
        found = rank.overview(model, starts, tokens)
        covers = model.covers()
    if as_json:
        files = {path: [rank.line(item).strip() for item in items] for path, items in sorted(found.items())}
        common.emit({"files": files, "covers": covers.to_json()})
        return 0
    for path, items in sorted(found.items()):
        common.out(f"{path}:")
        for item in items:
            common.out(rank.line(item))
    _covers(covers)
    return 0


@command.command("search")
@click.argument("pattern")
@click.argument("where", metavar="[PATH]", default=".")
@click.option("--language", default="", help="The language of the pattern; without it each file's own.")
@_folder
@common.json_option
def search_command(pattern: str, where: str, language: str, folder: Path, as_json: bool) -> int:
    """Find code by a pattern of its syntax tree, such as 'try: $$$A except: $$$B'. Exit 1 without a match."""
    from spak.world.search import search

    if not folder.is_dir():
        raise UsageError("usage.workspace", f"{folder} is not a folder", "name an existing one")
    found = search(folder, pattern, language, where)
    if as_json:
        rows = [
            {
                "path": item.path,
                "line": item.line,
                "end_line": item.end,
                "text": item.text,
                "names": item.names,
            }
            for item in found.matches
        ]
        common.emit(
            {"matches": rows, "cut": found.cut, "covers": {"files": found.files, "unknown": found.unknown}}
        )
    else:
        for item in found.matches:
            common.out(f"{item.path}:{item.line}-{item.end}  {' '.join(item.text.split())[:120]}")
        more = ", and there are more" if found.cut else ""
        common.say(f"{len(found.matches)} matches in {found.files} files{more}; {found.unknown} not parsed")
    return 0 if found.matches else 1


@command.command("rename")
@click.argument("target", metavar="PATH#SYMBOL|NAME")
@click.argument("name", metavar="NEW")
@click.option("--leave", is_flag=True, help="Leave places that name it and could not be followed.")
@_folder
@common.json_option
def rename_command(target: str, name: str, leave: bool, folder: Path, as_json: bool) -> int:
    """Print the patch that gives TARGET another name in all files: exactly the same program, or a refusal.

    Nothing is written: `spak world rename cart.py#pay settle | git apply`."""
    from spak.patch.make import make
    from spak.world.rename import rename

    with _model(folder) as (model, _):
        found = rename(model, model.target(target)[0], name, leave)
        covers = model.covers()
    patch = make(
        [(path, before, after) for path, (before, after) in sorted(found.files.items())], hashed=False
    )
    if as_json:
        strings = [{"path": path, "line": line} for path, line in found.strings]
        common.emit(
            {
                "files": sorted(found.files), "places": found.places, "strings": strings, "patch": patch,
                "covers": covers.to_json(),
            }
        )  # fmt: skip
        return 0
    common.out(patch.removesuffix("\n"))
    for path, line in found.strings[:20]:
        common.say(f"may: {path}:{line}  a string is the old name")
    common.say(f"{found.places} places in {len(found.files)} files; next: git apply")
    _covers(covers)
    return 0


@contextmanager
def _model(folder: Path) -> Iterator[tuple[Model, Any]]:
    """The model of a folder, up to date. Raises: UsageError `usage.workspace`, `world.*`."""
    from spak.paths import CODE, OURS
    from spak.world.ask import Model
    from spak.world.index import update
    from spak.world.store import Store

    if not folder.is_dir():
        raise UsageError("usage.workspace", f"{folder} is not a folder", "name an existing one")
    store = Store(folder / OURS / CODE)
    try:
        report = update(store, folder)
        yield Model(store, folder), report
    finally:
        store.close()


def _short(symbol: str) -> str:
    return symbol.partition("#")[2] or symbol.partition(":")[2]


def _rest(count: int, most: int, hint: str = "; --most shows them") -> None:
    if count > most:
        common.say(f"{count - most} more{hint}")


def _covers(covers: Covers) -> None:
    common.say(
        f"covers: {covers.indexed} files indexed, {covers.stale} stale,"
        f" {covers.unparsed} with parts that do not parse, {covers.unknown} known by name only,"
        f" {covers.unresolved} unresolved places in reach"
    )
