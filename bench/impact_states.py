"""Impact asked of a tree that is not as it was: does each answer say what it covers, and does the law deny?

A state is a small tree with a line of functions, each of which calls the one before, and a test of the last
one; its index was made, and then something happened to the tree or to the index. The names, the length of the
line and the place of the damage are drawn from the seed. Four doors answer: `spak world impact --json`, the
tool `impact` of a run, the page Code of a new reading, and a law with `guard(/symbols)` that judges a change
of the first file. Each door finds the index as the damage left it.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import random
import shutil
import sqlite3
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from spak import data
from spak.datalog import Policy, load
from spak.errors import UserError
from spak.paths import CODE, OURS
from spak.policy.actions import Action, World
from spak.policy.judge import judge
from spak.ports import Call, Look
from spak.tools import TOOLS
from spak.tools.observe.paths import Observer
from spak.tools.observe.predicates import answers
from spak.world import store as stores
from spak.world.index import update
from spak.world.store import Store

COUNTS = {"indexed", "stale", "unresolved", "unparsed", "unknown"}
FIRST = "shop/first.py"
NOBODY = 65534


@dataclass(frozen=True, slots=True)
class Shop:
    """The tree of one seed: the functions in the order of their calls, each in a file of its name."""

    root: Path
    names: tuple[str, ...]
    draw: random.Random

    @property
    def target(self) -> str:
        """The symbol that is asked about."""
        return f"{FIRST}#Rate.{self.names[0]}"

    def any(self) -> str:
        """The file of one of the functions."""
        return f"shop/{self.draw.choice(self.names[1:])}.py"

    def put(self, path: str, text: str | bytes) -> None:
        """Write a file."""
        place = self.root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(text.encode() if isinstance(text, str) else text)

    def change(self, path: str, before: str, after: str) -> None:
        """Replace the text of a file."""
        text = (self.root / path).read_text()
        assert before in text, (path, before)
        self.put(path, text.replace(before, after))

    def add(self, path: str, text: str) -> None:
        """More text at the end of a file."""
        self.put(path, (self.root / path).read_text() + text)


@dataclass(frozen=True, slots=True)
class State:
    """What happened: to the files, to an index, and what answers have to show."""

    files: Callable[[Shop], object] = lambda shop: None
    index: Callable[[Path], object] = lambda path: None
    shows: Mapping[str, int] | None = None
    """Counts of `covers`, at least."""
    denied: bool | None = None
    """Whether the law has to deny or to allow; None where either is right."""
    closed: bool = False
    """Whether rights matter, so that root has to be someone else."""


def laid_out(root: Path, seed: int) -> Shop:
    """A tree in which tests reach all that depends on the first file."""
    draw = random.Random(f"states {seed}")
    syllables = [a + b for a in "bdfglmnprst" for b in "aeiou"]
    names: list[str] = []
    while len(names) < draw.randint(4, 7):
        name = "".join(draw.sample(syllables, 3))
        names += [] if name in names else [name]
    shop = Shop(root, tuple(names), draw)
    first, last = names[0], names[-1]
    shop.put(FIRST, f"class Rate:\n    def {first}(self) -> int:\n        return {draw.randint(1, 99)}\n")
    before = f"from shop.first import Rate\n\n\ndef {names[1]}() -> int:\n    return Rate().{first}()\n"
    shop.put(f"shop/{names[1]}.py", before)
    for caller, callee in zip(names[2:], names[1:-1], strict=True):
        text = f"from shop.{callee} import {callee}\n\n\ndef {caller}() -> int:\n    return {callee}() + 1\n"
        shop.put(f"shop/{caller}.py", text)
    test = f"from shop.{last} import {last}\n\n\ndef test_{last}():\n    assert {last}() > 0\n"
    shop.put("tests/test_shop.py", test)
    shop.put("shop/other.py", "def other(text: str) -> str:\n    return text\n")
    return shop


def _untested(shop: Shop) -> str:
    """Code that calls something in the line, which no test reaches."""
    name = shop.draw.choice(shop.names[1:])
    return f"\n\nfrom shop.{name} import {name} as known\n\n\ndef later():\n    return known()\n"


def _guess(name: str) -> str:
    return f"def guess(thing):\n    return thing.{name}()\n"


def _same_stamp(shop: Shop) -> None:
    """The test calls another name of the same length; the file has the size and the time of before."""
    path, last = shop.root / "tests/test_shop.py", shop.names[-1]
    was = path.stat()
    shop.change("tests/test_shop.py", f"assert {last}(", f"assert {last.upper()}(")
    os.utime(path, ns=(was.st_atime_ns, was.st_mtime_ns))


def _moved(shop: Shop, mended: bool) -> None:
    last = shop.names[-1]
    (shop.root / f"shop/{last}.py").rename(shop.root / "shop/moved.py")
    if mended:
        shop.change("tests/test_shop.py", f"shop.{last}", "shop.moved")


def _links(shop: Shop) -> None:
    (shop.root / "shop/loop").symlink_to(shop.root)
    (shop.root / "shop/far.py").symlink_to("/etc/passwd")


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def _folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def _sql(path: Path, *lines: str) -> None:
    with contextlib.closing(sqlite3.connect(path)) as db:
        for line in lines:
            db.execute(line)
        db.commit()


def _computed(path: str) -> Callable[[Shop], None]:
    def add(shop: Shop) -> None:
        made = shop.draw.choice(("'to' + name", "name", "f'on_{name}'", "names[0]"))
        shop.add(path or shop.any(), f"\n\ndef called(thing, name):\n    return getattr(thing, {made})()\n")

    return add


HELD: list[sqlite3.Connection] = []
"""Connections that keep an index locked, until the state ends."""


def _locked(path: Path) -> None:
    HELD.append(sqlite3.connect(path, isolation_level=None))
    HELD[-1].execute("BEGIN EXCLUSIVE")


def _closed(shop: Shop, path: str) -> None:
    (shop.root / path).chmod(0)


UNPARSED, UNKNOWN, UNRESOLVED = {"unparsed": 1}, {"unknown": 1}, {"unresolved": 1}
STATES: Mapping[str, State] = {
    "nothing happened": State(denied=False),
    "a comment was added": State(lambda shop: shop.add(shop.any(), "\n# more\n"), denied=False),
    "an untested caller was added": State(
        lambda shop: shop.add("shop/other.py", _untested(shop)), denied=True
    ),
    "a file is new": State(lambda shop: shop.put("shop/new.py", _untested(shop)), denied=True),
    "a file was deleted": State(lambda shop: (shop.root / shop.any()).unlink()),
    "the target's file was deleted": State(lambda shop: (shop.root / FIRST).unlink()),
    "the target has another name": State(lambda shop: shop.change(FIRST, shop.names[0], "renamed")),
    "the test was deleted": State(lambda shop: (shop.root / "tests/test_shop.py").unlink(), denied=True),
    "the test was changed under its stamp": State(_same_stamp, denied=True),
    "a file was moved": State(lambda shop: _moved(shop, False), denied=True),
    "a file was moved with its imports": State(lambda shop: _moved(shop, True), denied=False),
    "links lead in a ring and out": State(_links, denied=False),
    "a file does not parse": State(
        lambda shop: shop.add(shop.any(), "\ndef (:\n"), shows=UNPARSED, denied=True
    ),
    "the target's file does not parse": State(
        lambda shop: shop.add(FIRST, "\ndef (:\n"), shows=UNPARSED, denied=True
    ),
    "the test does not parse": State(
        lambda shop: shop.put("tests/test_shop.py", "def test(:\n"), shows=UNPARSED, denied=True
    ),
    "not UTF-8": State(lambda shop: shop.put("shop/o.py", b"x = '\xe9'\n"), shows=UNKNOWN, denied=True),
    "a NUL byte": State(lambda shop: shop.put("shop/o.py", b"x = 1\0\n"), shows=UNKNOWN, denied=True),
    "one huge line": State(
        lambda shop: shop.put("shop/o.py", "x=" + "1+" * 30_000 + "1\n"), shows=UNKNOWN, denied=True
    ),
    "over 2 MiB": State(lambda shop: shop.put("shop/o.py", "x = 1\n" * 400_000), shows=UNKNOWN, denied=True),
    "a file may not be read": State(
        lambda shop: _closed(shop, shop.any()), shows=UNKNOWN, denied=True, closed=True
    ),
    "a folder may not be read": State(
        lambda shop: (shop.put("shop/in/a.py", "x = 1\n"), _closed(shop, "shop/in")), denied=True, closed=True
    ),
    "folders too deep": State(lambda shop: shop.put("d/" * 70 + "a.py", "x = 1\n"), denied=True),
    "an unknown receiver": State(
        lambda shop: shop.put("shop/o.py", _guess(shop.names[0])), shows=UNRESOLVED, denied=True
    ),
    "an unknown receiver of what depends on it": State(
        lambda shop: shop.put("shop/o.py", _guess(shop.draw.choice(shop.names[1:]))),
        shows=UNRESOLVED,
        denied=True,
    ),
    "getattr of the name": State(
        lambda shop: shop.put("shop/o.py", f"def f(x):\n    return getattr(x, '{shop.names[0]}', None)\n"),
        shows=UNRESOLVED,
        denied=True,
    ),
    "getattr of a computed name, where it is used": State(
        lambda shop: _computed(f"shop/{shop.names[1]}.py")(shop), shows=UNRESOLVED, denied=True
    ),
    "getattr of a computed name, in its file": State(_computed(FIRST), shows=UNRESOLVED),
    "the index was deleted": State(index=Path.unlink, denied=False),
    "the index is empty": State(index=lambda path: path.write_bytes(b""), denied=False),
    "the index is no database": State(index=lambda path: path.write_text("text " * 999), denied=False),
    "the index is cut in half": State(index=_cut),
    "the index is a folder": State(index=_folder, denied=True),
    "the index is of another version": State(
        index=lambda path: _sql(path, "PRAGMA user_version = 1"), denied=False
    ),
    "the index is of another folder": State(
        index=lambda path: _sql(path, "UPDATE tree SET root = '/elsewhere'"), denied=False
    ),
    "the index lost a table": State(index=lambda path: _sql(path, "DROP TABLE link"), denied=True),
    "the index is locked": State(
        lambda shop: shop.add(shop.any(), "\n\nX = 1\n"), index=_locked, denied=True
    ),
}


# ---- the doors


def _cli(shop: Shop) -> tuple[Mapping[str, Any] | None, str]:
    """`spak world impact`: `covers` of its answer, or the code of its error."""
    from spak.cli import spak
    from spak.cli.common import guarded

    words = ["spak", "world", "impact", shop.target, "--workspace", str(shop.root), "--json"]
    before, sys.argv = sys.argv, words
    printed = io.BytesIO()
    try:
        with (
            contextlib.redirect_stdout(io.TextIOWrapper(printed, write_through=True)),
            contextlib.redirect_stderr(io.TextIOWrapper(io.BytesIO())),
        ):
            guarded(spak)
            shown = json.loads(printed.getvalue())
    finally:
        sys.argv = before
    return (None, shown["error"]["code"]) if "error" in shown else (shown.get("covers", {}), "")


def _tool(shop: Shop) -> tuple[Mapping[str, Any] | None, str]:
    result = TOOLS["impact"].run(Call("id", "impact", {"symbol": shop.target}, shop.root, None))
    if result.exit:
        return None, str(result.diagnostics[0]["code"])
    return json.loads(result.output).get("covers", {}), ""


def _page(shop: Shop) -> tuple[Mapping[str, Any] | None, str]:
    """The page of a reading of the files as they are, over the index that the damage left."""
    from spakweb.face.sources import code_page
    from spakweb.store.sources import code_index
    from spakweb.work.sources import reading

    folder = shop.root.parent / "reading"
    try:
        reading.index(shop.root, folder)
        with code_index.opened(folder) as model:
            if model is None:
                return None, "world.missing"
            covers = code_page.shown(model, shop.target, lambda path: None)["covers"]
    except UserError as error:
        return None, error.code
    return covers.to_json(), ""


@cache
def _law() -> Policy:
    files = {path.name: path.read_text() for path in sorted(data.path("specs/policy").glob("*.mg"))}
    return load({**files, "POLICY": "guard(/symbols)."})


def _judged(shop: Shop) -> tuple[str, str]:
    """What the law says of a change of the first file, and the code of a denial."""
    eyes = Observer(shop.root)
    world = World(eyes.look, eyes.spread, eyes.read, frozenset(), below=eyes.below)
    look = Look(shop.root, index=shop.root.parent / CODE)
    action = Action("write_file", {"path": FIRST, "content": "x = 1\n"})
    found = judge(_law(), action, world, answers=lambda requests: answers(requests, look))
    return found.decision, found.code


# ---- one state after another


def rows(count: int) -> list[dict[str, Any]]:
    """The figures of that many states."""
    counts = Counter[str]()
    with _small_locks():
        for seed in range(count):
            name = list(STATES)[seed % len(STATES)]
            for fault in _asked(seed, name, STATES[name], counts):
                print(f"state {seed}, {name}: {fault}", file=sys.stderr)
    answered = f"{count} stale or unparsable states, {counts['answers']} answers, {counts['errors']} errors"
    return [
        _row(f"{answered}: without what they cover", counts["without"], "answers", "<= 0"),
        _row(
            f"{counts['unsafe']} changes with a gap in reach: allowed", counts["allowed"], "changes", "<= 0"
        ),
        _row(f"{counts['harmless']} changes without one: denied", counts["denied"], "changes", "<= 0"),
    ]


def _asked(seed: int, name: str, state: State, counts: Counter[str]) -> Iterator[str]:
    with tempfile.TemporaryDirectory(prefix="spak-bench-") as place:
        shop = laid_out(Path(place) / "ws", seed)
        store = Store(Path(place) / "base.sqlite")
        update(store, shop.root)
        store.close()
        state.files(shop)
        for door, at in (
            (_cli, f"ws/{OURS}/{CODE}"), (_tool, CODE), (_page, "reading/index.sqlite"), (_judged, CODE),
        ):  # fmt: skip
            index = Path(place) / at
            for path in index.parent.glob(f"{index.name}*"):
                shutil.rmtree(path) if path.is_dir() else path.unlink()
            index.parent.mkdir(exist_ok=True)
            shutil.copyfile(Path(place) / "base.sqlite", index)
            state.index(index)
            with _as_nobody(Path(place), state.closed):
                found = door(shop)
            while HELD:
                HELD.pop().close()
            if door is _judged:
                yield from _ruled(state, str(found[0]), counts)
            elif found[0] is None:
                counts["errors"] += 1
                if not found[1].startswith("world."):
                    counts["without"] += 1
                    yield f"{door.__name__}: {found[1]}"
            else:
                counts["answers"] += 1
                covers, wanted = dict(found[0]), state.shows or {}
                if covers.keys() < COUNTS or any(covers[key] < least for key, least in wanted.items()):
                    counts["without"] += 1
                    yield f"{door.__name__}: {covers}"


def _ruled(state: State, decision: str, counts: Counter[str]) -> Iterator[str]:
    if state.denied is None:
        return
    counts["unsafe" if state.denied else "harmless"] += 1
    if (decision == "allow") is state.denied:
        counts["allowed" if state.denied else "denied"] += 1
        yield f"the law says {decision}"


@contextlib.contextmanager
def _small_locks() -> Iterator[None]:
    """Do not wait long for a lock that nobody lets go of."""
    before, stores.BUSY_S = stores.BUSY_S, 0.05
    try:
        yield
    finally:
        stores.BUSY_S = before


@contextlib.contextmanager
def _as_nobody(place: Path, closed: bool) -> Iterator[None]:
    """Files without rights are read by root: be someone else, where this is root and rights matter."""
    if not closed or os.geteuid():
        yield
        return
    for path in (place, *place.rglob("*")):
        os.chown(path, NOBODY, NOBODY)
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


def _row(name: str, ours: int, unit: str, aim: str) -> dict[str, Any]:
    return {"name": f"world: {name}", "ours": ours, "floor": 0, "unit": unit, "aim": aim}
