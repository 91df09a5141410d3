"""A run's changes are brought into a folder whole or not at all, and taken back."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fault_points import FaultPoints
from spak import canon
from spak.apply_run.bring import Change, bring, opened, plan, recover, undo
from spak.apply_run.journal import Journal
from spak.apply_run.three_way import Conflict, Side, joined
from spak.apply_run.user_folder import NOTHING, Thing, UserFolder
from spak.errors import RunError
from spak.files.disk import Disk

Files = Mapping[str, str | bytes | Side]
GONE: Side = (NOTHING, b"")


class Killed(BaseException):
    """The process is gone."""


def file(data: str | bytes, executable: bool = False) -> Side:
    data = data.encode() if isinstance(data, str) else data
    return Thing("f", canon.digest(data), executable), data


def link(target: str) -> Side:
    return Thing("l", canon.digest(target.encode())), target.encode()


def held(folder: Path) -> dict[str, tuple[str, bytes, bool]]:
    found = {}
    for path in sorted(folder.rglob("*")):
        mode = path.lstat().st_mode
        if stat.S_ISLNK(mode):
            found[str(path.relative_to(folder))] = ("l", os.readlink(path).encode(), False)  # noqa: PTH115
        elif stat.S_ISREG(mode):
            found[str(path.relative_to(folder))] = ("f", path.read_bytes(), bool(mode & 0o100))
    return found


@contextmanager
def both(run: Path, user: Path, disk: Disk | None = None) -> Iterator[tuple[Journal, UserFolder]]:
    journal = Journal(run, disk)
    with journal.held(), opened(user) as folder:
        if disk is not None:
            folder._disk = disk
        yield journal, folder


@pytest.fixture
def places(tmp_path: Path) -> tuple[Path, Path]:
    run, user = tmp_path / "run", tmp_path / "user"
    run.mkdir()
    user.mkdir()
    return run, user


def some(user: Path) -> list[Change]:
    """A folder, and changes of every kind to it."""
    (user / "src").mkdir()
    (user / "old").mkdir()
    (user / "src/app.py").write_text("one\ntwo\nthree\n")
    (user / "old/gone.txt").write_text("gone\n")
    (user / "run.sh").write_text("echo\n")
    (user / "turns").write_text("a file\n")
    (user / "here").symlink_to("src/app.py")
    return [
        Change("here", link("src/app.py"), link("run.sh")),
        Change("new/deep/made.py", GONE, file("made\n")),
        Change("old/gone.txt", file("gone\n"), GONE),
        Change("run.sh", file("echo\n"), file("echo\n", executable=True)),
        Change("src/app.py", file("one\ntwo\nthree\n"), file("one\ntwo\n3\n")),
        Change("turns", file("a file\n"), GONE),
        Change("turns/inner.txt", GONE, file("inner\n")),
    ]


def test_what_changed_is_brought_and_taken_back(places: tuple[Path, Path]) -> None:
    run, user = places
    wanted = some(user)
    before = held(user)
    with both(run, user) as (journal, folder):
        one = bring(journal, folder, plan(folder, wanted), {"by": "me"})
    assert one is not None
    assert held(user) == {
        "here": ("l", b"run.sh", False),
        "new/deep/made.py": ("f", b"made\n", False),
        "run.sh": ("f", b"echo\n", True),
        "src/app.py": ("f", b"one\ntwo\n3\n", False),
        "turns/inner.txt": ("f", b"inner\n", False),
    }
    assert not (user / "old").exists()
    with both(run, user) as (journal, folder):
        (stands,) = journal.standing()
        assert bring(journal, folder, plan(folder, undo(journal, stands)), {}, stands.number)
        assert journal.standing() == []
    assert held(user) == before


def test_what_the_folder_has_since_is_merged_or_a_conflict(places: tuple[Path, Path]) -> None:
    run, user = places
    wanted = some(user)
    (user / "src/app.py").write_text("zero\none\ntwo\nthree\n")
    with both(run, user) as (journal, folder):
        planned = plan(folder, wanted)
        assert [step.path for step in planned.steps if planned.merged(step)] == ["src/app.py"]
        bring(journal, folder, planned, {})
    assert (user / "src/app.py").read_text() == "zero\none\ntwo\n3\n"
    (user / "src/app.py").write_text("zero\none\ntwo\n3!\n")
    before = held(user)
    with both(run, user) as (journal, folder):
        planned = plan(folder, undo(journal, journal.standing()[0]))
        assert [path for path, _ in planned.conflicts] == ["src/app.py"]
        with pytest.raises(RunError) as caught:
            bring(journal, folder, planned, {}, 1)
    assert caught.value.code == "apply.conflict" and "src/app.py" in caught.value.message
    assert held(user) == before


@pytest.mark.parametrize(
    ("base", "wanted", "found", "left"),
    [
        (GONE, file("a"), GONE, file("a")),
        (GONE, file("a"), file("a"), file("a")),
        (GONE, file("a"), file("b"), None),
        (file("a"), GONE, file("a"), GONE),
        (file("a"), GONE, GONE, GONE),
        (file("a"), GONE, file("b"), None),
        (file("a"), file("b"), GONE, None),
        (file("a"), file("b"), (Thing("other"), b""), None),
        (file("a"), file("b"), link("a"), None),
        (file("a\r\nb\r\n"), file("a\r\nc\r\n"), file("0\r\na\r\nb\r\n"), file("0\r\na\r\nc\r\n")),
        (file("a\n"), file("a\n", executable=True), file("b\n"), file("b\n", executable=True)),
        (file("a\n"), file("b\n"), file("a\n", executable=True), file("b\n", executable=True)),
        (file("\0a"), file("\0b"), file("\0c"), None),
        (file(b"\xff\nb\n"), file(b"\xff\nc\n"), file(b"0\n\xff\nb\n"), file(b"0\n\xff\nc\n")),
    ],
)
def test_each_case_of_three_sides(base: Side, wanted: Side, found: Side, left: Side | None) -> None:
    if left is None:
        with pytest.raises(Conflict):
            joined(base, wanted, found)
    else:
        assert joined(base, wanted, found) == left


@pytest.mark.faults
def test_it_is_whole_or_not_at_all_wherever_it_is_killed(tmp_path: Path, fault_points: FaultPoints) -> None:
    """kill -9 before each call that changes the disk, in the bringing and in what recovers it."""
    calls: list[str] = []
    run, user = tmp_path / "count/run", tmp_path / "count/user"
    run.mkdir(parents=True)
    user.mkdir()
    wanted = some(user)
    with both(run, user, Disk(calls.append)) as (journal, folder):
        bring(journal, folder, plan(folder, wanted), {})
    whole = held(user)
    assert len(calls) > 30
    for at in range(len(calls)):
        run, user = tmp_path / f"{at}/run", tmp_path / f"{at}/user"
        run.mkdir(parents=True)
        user.mkdir()
        wanted = some(user)
        before = held(user)
        _killed_at(at, run, user, wanted)
        for again in (at % 7, None):  # the one that recovers is killed too
            _recovered(run, user, again)
        assert held(user) in (before, whole), (at, calls[at])
        with both(run, user) as (journal, folder):
            assert journal.under_way() is None
            assert len(journal.standing()) == (held(user) == whole)
        fault_points["killed"] += 1


def _hook(at: int):  # type: ignore[no-untyped-def]
    left = [at]

    def before(call: str) -> None:
        if left[0] == 0:
            raise Killed(call)
        left[0] -= 1

    return before


def _killed_at(at: int, run: Path, user: Path, wanted: list[Change]) -> None:
    """What a process leaves that is gone at once: nothing is taken back."""
    child = os.fork()
    if child == 0:
        try:
            hook = _hook(at)

            def before(call: str) -> None:
                try:
                    hook(call)
                except Killed:
                    os._exit(9)

            with both(run, user, Disk(before)) as (journal, folder):
                bring(journal, folder, plan(folder, wanted), {})
        finally:
            os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9


def _recovered(run: Path, user: Path, killed_at: int | None) -> None:
    disk = Disk() if killed_at is None else Disk(_hook(killed_at))
    try:
        with both(run, user, disk) as (journal, folder):
            if (one := journal.under_way()) is not None:
                assert recover(journal, folder, one).finished
    except Killed:
        return


@pytest.mark.faults
def test_a_failing_disk_leaves_the_folder_as_it_was(tmp_path: Path, fault_points: FaultPoints) -> None:
    calls: list[str] = []
    run, user = tmp_path / "count/run", tmp_path / "count/user"
    run.mkdir(parents=True)
    user.mkdir()
    wanted = some(user)
    with both(run, user, Disk(calls.append)) as (journal, folder):
        planned = plan(folder, wanted)
        begun = len(calls)
        bring(journal, folder, planned, {})
    last = len(calls) - 1 - calls[::-1].index("syncfs")
    for at in range(begun, last):
        run, user = tmp_path / f"{at}/run", tmp_path / f"{at}/user"
        run.mkdir(parents=True)
        user.mkdir()
        wanted, left = some(user), [at]
        before = held(user)

        def fail(call: str, left: list[int] = left) -> None:
            left[0] -= 1
            if left[0] == -1:
                raise OSError(28, "No space left on device")

        with both(run, user, Disk(fail)) as (journal, folder):
            with pytest.raises(RunError) as caught:
                bring(journal, folder, plan(folder, wanted), {})
            assert caught.value.code == "workspace.full"
            assert journal.standing() == []
        assert held(user) == before, (at, calls[at])
        fault_points["disk full"] += 1


def test_what_was_edited_after_a_kill_is_left_and_the_rest_taken_back(places: tuple[Path, Path]) -> None:
    run, user = places
    wanted = some(user)
    before = held(user)
    with both(run, user) as (journal, folder):
        assert len(plan(folder, wanted).writes) == 7
    _killed_at(26, run, user, wanted)
    (user / "src/app.py").write_text("mine\n")
    with both(run, user) as (journal, folder):
        one = journal.under_way()
        assert one is not None
        found = recover(journal, folder, one)
    assert (found.finished, found.edited) == (False, ("src/app.py",))
    assert held(user) == {**before, "src/app.py": ("f", b"mine\n", False)}


@pytest.mark.parametrize("late", [False, True])
def test_what_is_edited_while_it_is_applied_is_a_conflict_and_stays(
    places: tuple[Path, Path], late: bool
) -> None:
    """Between the look and the write a person is asked, or the process was stopped for an hour."""
    run, user = places
    wanted = some(user)
    edited = user / "run.sh"

    def edits(call: str) -> None:
        if call == "symlink":  # of a path that is written before this one
            edited.write_text("mine\n")

    was = held(user)
    with both(run, user, Disk(edits if late else lambda call: None)) as (journal, folder):
        planned = plan(folder, wanted)
        if not late:
            edited.write_text("mine\n")
        with pytest.raises(RunError) as caught:
            bring(journal, folder, planned, {})
        assert caught.value.code == "apply.conflict" and "run.sh" in caught.value.message
        assert journal.under_way() is None and journal.standing() == []
    assert held(user) == {**was, "run.sh": ("f", b"mine\n", False)}


def test_a_link_on_the_way_is_not_followed(places: tuple[Path, Path], tmp_path: Path) -> None:
    run, user = places
    outside = tmp_path / "outside"
    outside.mkdir()
    (user / "src").symlink_to(outside)
    with both(run, user) as (_, folder):
        planned = plan(folder, [Change("src/app.py", GONE, file("new\n"))])
        assert [path for path, _ in planned.conflicts] == ["src/app.py"]
    assert list(outside.iterdir()) == []


def test_a_run_folder_that_cannot_be_written_is_an_error_with_a_code(places: tuple[Path, Path]) -> None:
    run, user = places
    (run / "applied").write_text("in the way")
    with pytest.raises(RunError) as caught, both(run, user):
        pass
    assert caught.value.code.startswith("workspace.")


def test_where_modes_do_not_count_those_of_the_folder_stay(places: tuple[Path, Path]) -> None:
    run, user = places
    for name, mode in (("script", 0o755), ("plain", 0o644), ("gone", 0o755)):
        (user / name).write_text("old\n")
        (user / name).chmod(mode)
    wanted = [
        *(Change(name, file("old\n"), file("new\n")) for name in ("plain", "script")),
        Change("gone", file("old\n"), GONE),
        Change("made", GONE, file("made\n")),
    ]
    journal = Journal(run)
    with journal.held(), opened(user, modes=False) as folder:
        one = bring(journal, folder, plan(folder, wanted), {})
        assert one is not None and (user / "script").read_text() == "new\n"
        modes = {path.name: path.stat().st_mode & 0o111 for path in user.iterdir()}
        assert modes == {"script": 0o111, "plain": 0, "made": 0}
        bring(journal, folder, plan(folder, undo(journal, one)), {}, one.number)
    assert {path.name: path.stat().st_mode & 0o111 for path in user.iterdir()} == {
        "script": 0o111, "plain": 0, "gone": 0o111,
    }  # fmt: skip


def test_two_at_once_are_told_apart(places: tuple[Path, Path], tmp_path: Path) -> None:
    run, user = places
    other = tmp_path / "other"
    other.mkdir()
    with both(run, user):
        for taken in ((run, user), (other, user)):
            with pytest.raises(RunError) as caught, both(*taken):
                pass
            assert caught.value.code == "apply.busy"


@given(st.lists(st.sampled_from("abc\n"), max_size=8).map("".join), st.data())
def test_sides_that_agree_are_never_a_conflict(base: str, data: st.DataObject) -> None:
    texts = st.lists(st.sampled_from("abc\n"), max_size=8).map("".join)
    other = data.draw(texts)
    for sides in ((base, other, base), (base, base, other), (base, other, other)):
        assert joined(*map(file, sides)) == file(other)


def test_what_is_taken_back_may_be_read_by_no_more_people_than_before(places: tuple[Path, Path]) -> None:
    run, user = places
    (user / "private").write_text("mine\n")
    (user / "private").chmod(0o600)
    (user / "turned").write_text("a file\n")
    (user / "turned").chmod(0o640)
    (user / "here").symlink_to("turned")
    wanted = [
        Change("here", link("turned"), file("a file by now\n")),
        Change("private", file("mine\n"), GONE),
        Change("turned", file("a file\n"), link("here")),
    ]
    with both(run, user) as (journal, folder):
        done = bring(journal, folder, plan(folder, wanted), {})
        assert done is not None and not stat.S_IMODE((user / "here").lstat().st_mode) & 0o022
        bring(journal, folder, plan(folder, undo(journal, journal.standing()[-1])), {}, done.number)
    modes = {path: stat.S_IMODE((user / path).lstat().st_mode) for path in ("private", "turned")}
    assert modes == {"private": 0o600, "turned": 0o640} and (user / "here").is_symlink()
