"""The index of a pack: the store answers the same with it, without it, and with a damaged or foreign one."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from spak import canon
from spak.errors import RunError
from spak.files.disk import Disk
from spak.workspace import Workspace, index
from spak.workspace.store import Store


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index, "LEAST", 5)


def data(number: int) -> bytes:
    return b"object %d " % number * (number % 7 + 1)


def digest(number: int) -> str:
    return canon.digest(data(number))


def opened(folder: Path, write: bool = True) -> Store:
    folder.mkdir(exist_ok=True)
    store = Store(folder, Disk())
    store.look(write=write)
    return store


def step(store: Store, *numbers: int, settle: bool = True) -> None:
    for number in numbers:
        store.put(digest(number), data(number))
    store.begin(b"effect %d" % numbers[0])
    if settle:
        store.settle()


def filled(folder: Path, steps: int = 20) -> Store:
    store = opened(folder)
    for number in range(steps):
        step(store, 2 * number, 2 * number + 1)
    store.keep_index()
    assert (folder / "index").is_file() and not store._index
    return store


def holds(store: Store, present: range) -> None:
    for number in present:
        assert store.has(digest(number)) and store.read(digest(number)) == data(number)
    for odd in (digest(10_000), "", "A" * 43, "_" * 43, "é"):
        assert not store.has(odd)


def test_a_store_opens_at_the_end_of_its_index(tmp_path: Path) -> None:
    store = filled(tmp_path / "s")
    step(store, 100)
    for write in (False, True):
        again = opened(tmp_path / "s", write)
        holds(again, range(40))
        assert again.read(digest(100)) == data(100)
        assert set(again._index) == {digest(100)} and len(again._base) == 40
        assert again.begun() is None


def test_it_grows_by_a_tenth_or_not_at_all(tmp_path: Path) -> None:
    store = filled(tmp_path / "s", 50)
    step(store, 200, 201, 202, 203, 204, 205)
    before = (tmp_path / "s/index").stat().st_mtime_ns
    store.keep_index()
    assert (tmp_path / "s/index").stat().st_mtime_ns == before and len(store._base) == 100
    step(store, *range(206, 212))
    store.keep_index()
    assert len(store._base) == 112 and not store._index
    holds(opened(tmp_path / "s"), range(100))


@pytest.mark.parametrize("settled", [True, False])
def test_the_step_under_way_is_known(tmp_path: Path, settled: bool) -> None:
    store = filled(tmp_path / "s")
    step(store, *range(100, 120), settle=False)
    store.keep_index()
    assert len(store._base) == 60
    if settled:
        store.settle()
    assert opened(tmp_path / "s").begun() == (None if settled else b"effect 100")


def cut(folder: Path) -> None:
    path = folder / "pack"
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def another_pack(folder: Path) -> None:
    (folder / "pack").unlink()
    store = opened(folder)
    for number in range(30):
        step(store, number)


def flip(at: int) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        found = bytearray((folder / "index").read_bytes())
        found[at] ^= 1
        (folder / "index").write_bytes(bytes(found))

    return change


DAMAGE: dict[str, Callable[[Path], None]] = {
    "gone": lambda folder: (folder / "index").unlink(),
    "empty": lambda folder: (folder / "index").write_bytes(b"") and None,
    "cut": lambda folder: (folder / "index").write_bytes((folder / "index").read_bytes()[:-1]) and None,
    "an entry less": lambda folder: (
        (folder / "index").write_bytes((folder / "index").read_bytes()[:-59]) and None
    ),
    "magic": flip(3),
    "end": flip(20),
    "head": flip(40),
    "an entry": flip(-30),
    "the pack lost its end": cut,
    "of another pack": another_pack,
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_one_that_is_not_of_its_pack_is_not_used(tmp_path: Path, damage: Callable[[Path], None]) -> None:
    filled(tmp_path / "s")
    damage(tmp_path / "s")
    shutil.copytree(tmp_path / "s", tmp_path / "bare")
    (tmp_path / "bare/index").unlink(missing_ok=True)
    found, bare = opened(tmp_path / "s"), opened(tmp_path / "bare")
    assert len(found._base) == 0
    assert (found._index, found._end) == (bare._index, bare._end)
    step(found, 500)
    assert opened(tmp_path / "s").read(digest(500)) == data(500)


@pytest.mark.parametrize("seed", range(10))
def test_any_order_of_work_gives_the_same_store(tmp_path: Path, seed: int) -> None:
    draw, known = random.Random(seed), set[int]()
    store = opened(tmp_path / "s")
    for _ in range(60):
        match draw.randrange(5):
            case 0:
                store = opened(tmp_path / "s")
            case 1:
                store.keep_index()
            case _:
                numbers = [draw.randrange(300) for _ in range(draw.randint(1, 6))]
                known |= set(numbers)
                step(store, *numbers, settle=draw.random() < 0.8)
    for found in (store, opened(tmp_path / "s")):
        assert {number for number in range(300) if found.has(digest(number))} == known
        assert all(found.read(digest(number)) == data(number) for number in known)
    assert store.begun() == opened(tmp_path / "s").begun()


def test_a_damaged_object_is_still_found(tmp_path: Path) -> None:
    store = filled(tmp_path / "s")
    place = store._place(digest(3))
    assert place is not None
    raw = bytearray((tmp_path / "s/pack").read_bytes())
    raw[place[0]] ^= 1
    (tmp_path / "s/pack").write_bytes(bytes(raw))
    with pytest.raises(RunError) as caught:
        opened(tmp_path / "s").read(digest(3))
    assert caught.value.code == "workspace.object"


def test_a_workspace_with_an_index_goes_back_and_on(tmp_path: Path) -> None:
    def place() -> Workspace:
        return Workspace(tmp_path / "w", tmp_path / "s")

    space = place()
    roots = []
    for number in range(12):
        space.begin(f"e{number}")
        (tmp_path / "w/a.txt").write_text(f"text {number}")
        roots.append(space.commit())
        space.settle()
        space.keep_index()
    assert (tmp_path / "s/index").is_file()
    again = place()
    for number in (0, 7, 11):
        again.restore(roots[number])
        assert (tmp_path / "w/a.txt").read_text() == f"text {number}" and again.snapshot() == roots[number]
    again.begin("e99")
    (tmp_path / "w/a.txt").write_text("half done")
    assert place().recover("e99", roots[11]) and (tmp_path / "w/a.txt").read_text() == "text 11"


def test_a_disk_that_takes_none_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    space = Workspace(tmp_path / "w", tmp_path / "s")
    for number in range(12):
        space.begin(f"e{number}")
        (tmp_path / "w/a.txt").write_text(f"text {number}")
        space.commit()
        space.settle()

    def full(*args: object) -> None:
        raise OSError(28, "full")

    monkeypatch.setattr(index, "write", full)
    space.keep_index()
    assert not (tmp_path / "s/index").exists()
    assert Workspace(tmp_path / "w", tmp_path / "s").snapshot()
