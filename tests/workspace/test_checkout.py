"""The checkout of a run's checks: the beginning with the changes that are kept, kept and compared."""

from __future__ import annotations

from pathlib import Path

import pytest

from spak.door import Change
from spak.errors import RunError
from spak.workspace import Workspace
from spak.workspace import checkout as module


def no_tests(one: Change) -> bool:
    return not one.path.startswith("tests")


@pytest.fixture
def place(tmp_path: Path) -> Workspace:
    made = Workspace(tmp_path / "ws", tmp_path / "store")
    made.directory.mkdir()
    write(made, **{"src/a.py": "1\n", "src/b.py": "1\n", "tests/t.py": "1\n"})
    return made


def write(place: Workspace, **files: str | None) -> str:
    for path, text in files.items():
        target = place.directory / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.unlink() if text is None else target.write_text(text)
    return place.snapshot()


def held(place: Workspace) -> dict[str, str]:
    folder = place.checkout.folder
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}


def test_it_is_kept_and_brought_up_to_date_by_what_differs(place: Workspace) -> None:
    begun = place.snapshot()
    assert place.checkout.hold(begun, begun, no_tests) == ""
    assert place.checkout.hold(begun, write(place, **{"src/a.py": "2\n"}), no_tests) == ""
    assert not place.checkout.folder.exists(), "one pass is enough"
    now = write(place, **{"tests/t.py": "2\n", "src/new.py": "2\n"})
    first = place.checkout.hold(begun, now, no_tests)
    assert held(place) == {"src/a.py": "2\n", "src/b.py": "1\n", "src/new.py": "2\n", "tests/t.py": "1\n"}
    inode = (place.checkout.folder / "src/b.py").stat().st_ino
    now = write(place, **{"src/a.py": "3\n", "src/new.py": None, "tests/more.py": "3\n"})
    second = place.checkout.hold(begun, now, no_tests)
    assert first != second and held(place) == {"src/a.py": "3\n", "src/b.py": "1\n", "tests/t.py": "1\n"}
    assert (place.checkout.folder / "src/b.py").stat().st_ino == inode


def test_what_somebody_left_in_it_is_not_there_the_next_time(place: Workspace) -> None:
    begun = place.snapshot()
    now = write(place, **{"tests/t.py": "2\n"})
    assert place.checkout.hold(begun, now, no_tests) == begun
    (place.checkout.folder / "tests/t.py").write_text("0\n")
    (place.checkout.folder / "conftest.py").write_text("0\n")
    assert place.checkout.hold(begun, now, no_tests) == begun
    assert held(place) == {"src/a.py": "1\n", "src/b.py": "1\n", "tests/t.py": "1\n"}


def test_one_that_is_not_what_it_was_made_to_be_is_not_used(
    place: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = place.snapshot()
    now = write(place, **{"tests/t.py": "2\n"})
    monkeypatch.setattr(module.Applier, "apply", lambda *given: [])
    with pytest.raises(RunError) as raised:
        place.checkout.hold(begun, now, no_tests)
    assert raised.value.code == "workspace.changing"
