"""Opening below a root: judged by where the kernel would go, and nothing outside is ever touched."""

from __future__ import annotations

import os
import shutil
import stat
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policy_kit import LAW
from spak.errors import UsageError
from spak.files import beneath
from spak.kernel.observed import seen_json
from spak.tools.observe.paths import Observer


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A workspace with links of all kinds, and a canary beside it."""
    root = tmp_path / "ws"
    (root / "src/deep/er").mkdir(parents=True)
    (root / "src/a.py").write_text("inside")
    (root / "src/deep/er/b").write_text("deep")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/canary").write_text("canary")
    for name, target in {
        "out": "../outside",
        "out_file": "../outside/canary",
        "absolute": "/etc/passwd",
        "slash": "/",
        "in": "src",
        "in_file": "src/a.py",
        "in_again": "in",
        "chain": "out",
        "new_out": "../outside/new",
        "new_in": "src/new",
        "proc": "/proc/self/root",
        "dot": ".",
        "deep": "src/deep/er",
        "guest": "/ws/src",
        "loop_a": "loop_b",
        "loop_b": "loop_a",
        "src/deep/up": "../../../outside",
        "src/deep/home": "../..",
    }.items():
        (root / name).symlink_to(target)
    (root / "hard").hardlink_to(tmp_path / "outside/canary")
    os.mkfifo(root / "fifo")
    return root


@pytest.mark.parametrize(
    ("path", "content"),
    [
        ("src/a.py", b"inside"),
        ("./src//a.py", b"inside"),
        ("/ws/src/a.py", b"inside"),
        ("in/a.py", b"inside"),
        ("in_again/a.py", b"inside"),
        ("in_file", b"inside"),
        ("guest/a.py", b"inside"),
        ("dot/src/a.py", b"inside"),
        ("dot/dot/dot/src/a.py", b"inside"),
        ("deep/b", b"deep"),
        ("deep/../../a.py", b"inside"),
        ("src/deep/er/../../a.py", b"inside"),
        ("src/deep/home/src/a.py", b"inside"),
    ],
)
def test_what_stays_inside_is_opened(tree: Path, path: str, content: bytes) -> None:
    assert beneath.read_beneath(tree, path) == content
    assert beneath.write_beneath(tree, path, b"new").startswith("src/")
    assert beneath.content(tree, path) == b"new"


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("../outside/canary", "path.parent"),
        ("src/../../outside/canary", "path.outside"),
        ("in/../../outside/canary", "path.outside"),
        ("dot/../outside/canary", "path.outside"),
        ("out/canary", "path.outside"),
        ("out_file", "path.outside"),
        ("chain/canary", "path.outside"),
        ("absolute", "path.outside"),
        ("slash/etc/passwd", "path.outside"),
        ("proc/etc/passwd", "path.outside"),
        ("src/deep/up/canary", "path.outside"),
        ("new_out", "path.outside"),
        ("loop_a", "path.loop"),
        ("loop_a/x", "path.loop"),
        ("fifo", "path.not_a_file"),
        ("src", "path.not_a_file"),
        (".", "path.not_a_file"),
        ("src/a.py/x", "path.not_a_folder"),
        ("a" * 256, "path.too_long"),
    ],
)
def test_what_leaves_or_is_no_file_is_refused(tree: Path, path: str, code: str) -> None:
    for attempt in (
        lambda: beneath.read_beneath(tree, path),
        lambda: beneath.write_beneath(tree, path, b"x"),
        lambda: beneath.remove_beneath(tree, path),
    ):
        with pytest.raises(UsageError) as caught:
            attempt()
        assert caught.value.code == code
    assert beneath.content(tree, path) is None
    assert (tree.parent / "outside/canary").read_text() == "canary"
    assert sorted(item.name for item in (tree.parent / "outside").iterdir()) == ["canary"]


def test_a_new_file_may_be_made_through_a_link_that_stays(tree: Path) -> None:
    assert beneath.write_beneath(tree, "new_in", b"x") == "src/new"
    assert (tree / "new_in").is_symlink() and (tree / "src/new").read_bytes() == b"x"


def test_a_hard_link_is_cut_not_written_through(tree: Path) -> None:
    beneath.write_beneath(tree, "hard", b"mine")
    assert (tree / "hard").read_bytes() == b"mine"
    assert (tree.parent / "outside/canary").read_text() == "canary"


def test_modes_owners_and_folders(tree: Path) -> None:
    owner = (12345, 12345) if os.geteuid() == 0 else (os.getuid(), os.getgid())
    os.chown(tree, *owner)
    beneath.write_beneath(tree, "x/y/z", b"1")
    beneath.write_beneath(tree, "x/tool", b"1", 0o755)
    beneath.write_beneath(tree, "x/tool", b"2")
    for name, mode in (("x", 0o755), ("x/y", 0o755), ("x/y/z", 0o644), ("x/tool", 0o755)):
        status = (tree / name).stat()
        assert (stat.S_IMODE(status.st_mode), (status.st_uid, status.st_gid)) == (mode, owner)
    assert sorted(item.name for item in (tree / "x").iterdir()) == ["tool", "y"]


def test_reading_stops_at_the_limit(tree: Path) -> None:
    with pytest.raises(UsageError) as caught:
        beneath.read_beneath(tree, "src/a.py", limit=5)
    assert caught.value.code == "path.too_large"
    assert beneath.read_beneath(tree, "src/a.py", limit=6) == b"inside"


def test_a_place_may_be_looked_at_before_its_folders_are_there(tree: Path) -> None:
    with beneath.locate(tree, "in/no/such/file", folders="may") as place:
        assert (place.parts, place.status()) == (("src", "no", "such", "file"), None)
    with pytest.raises(UsageError), beneath.locate(tree, "in/no/../../../x", folders="may"):
        pass
    assert not (tree / "src/no").exists()


def test_swapping_a_folder_for_a_link_never_leads_out(tree: Path) -> None:
    """The race that a check by name loses: a folder becomes a link to the outside between two looks."""
    (tree / "swap").mkdir()
    (tree / "swap/canary").write_text("inside")
    (tree / "link").symlink_to("../outside")
    stop = threading.Event()

    def swap() -> None:
        while not stop.is_set():
            for one, two in (("swap", "kept"), ("link", "swap"), ("swap", "link"), ("kept", "swap")):
                try:
                    (tree / one).rename(tree / two)
                except OSError:  # a write has made a folder of that name meanwhile
                    shutil.rmtree(tree / "kept", ignore_errors=True)

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        seen = {beneath.content(tree, "swap/canary") for _ in range(3000)}
        for _ in range(1000):
            try:
                beneath.write_beneath(tree, "swap/canary", b"inside")
            except UsageError:
                continue
    finally:
        stop.set()
        thread.join()
    assert seen <= {None, b"inside"}
    assert (tree.parent / "outside/canary").read_text() == "canary"
    assert sorted(item.name for item in (tree.parent / "outside").iterdir()) == ["canary"]


PARTS = st.lists(
    st.sampled_from(["src", "deep", "in", "out", "dot", "..", ".", "a.py", "up", "home", "b", "guest"])
)


@given(parts=PARTS)
def test_the_kernel_agrees(tmp_path_factory: pytest.TempPathFactory, parts: list[str]) -> None:
    """What is opened is the file that the kernel would open, and it lies below the root."""
    root = _KEPT.get("root")
    if root is None:
        root = _KEPT["root"] = tmp_path_factory.mktemp("agree") / "ws"
        tree.__wrapped__(root.parent)  # type: ignore[attr-defined]
        (root / "guest").unlink()
    text = "/".join(parts)
    ours = beneath.content(root, text) if text else None
    real = (root / text).resolve() if text else root
    inside = real.is_relative_to(root.resolve()) and real.is_file() and (root / text).is_file()
    if ours is not None:
        assert inside and real.read_bytes() == ours
    elif inside:
        assert _leaves_on_the_way(root, parts)


@LAW
@given(parts=PARTS, absolute=st.booleans())
def test_what_is_used_is_what_was_judged(
    tmp_path_factory: pytest.TempPathFactory, parts: list[str], absolute: bool
) -> None:
    """The gate sees a path lead to the same file as the tool that uses it, or the tool refuses."""
    root = _KEPT.get("judged")
    if root is None:
        root = _KEPT["judged"] = tmp_path_factory.mktemp("judged").resolve() / "ws"
        tree.__wrapped__(root.parent)  # type: ignore[attr-defined]
    text = "/".join([*(["/ws"] if absolute else []), *parts]) or "."
    seen = Observer(root).look(text)
    try:
        with beneath.locate(root, text, folders="may") as place:
            assert seen.place == "inside" and seen.path == place.path
    except UsageError as error:
        assert (
            seen.place == "outside"
            or error.code in ("path.loop", "path.missing", "path.not_a_folder")
            or (error.code in ("path.outside", "path.parent") and _leaves_on_the_way(root, parts))
        )


@LAW
@given(
    parts=PARTS,
    name=st.sampled_from(["src", "in", "dot", "guest"]),
    target=st.sampled_from(["src", ".", "src/deep"]),
)
def test_what_leads_elsewhere_since_it_was_judged_is_not_used(
    tmp_path_factory: pytest.TempPathFactory, parts: list[str], name: str, target: str
) -> None:
    """A link is put in another one's place between the judgement and the use."""
    root = _KEPT.get("moved")
    if root is None:
        root = _KEPT["moved"] = tmp_path_factory.mktemp("moved").resolve() / "ws"
        tree.__wrapped__(root.parent)  # type: ignore[attr-defined]
    text = "/".join(parts) or "."
    observed = {"paths": [seen_json(text, Observer(root).look(text))]}
    if observed["paths"][0][1] != "inside":
        return
    kept = root / "kept"
    (root / name).rename(kept)
    (root / name).symlink_to(target if name != "src" else "kept")
    try:
        with beneath.as_judged(observed), beneath.locate(root, text, folders="may") as place:
            assert place.path == observed["paths"][0][2]
    except UsageError as error:
        assert error.code.startswith("path.")
    finally:
        (root / name).unlink()
        kept.rename(root / name)


_KEPT: dict[str, Path] = {}


def _leaves_on_the_way(root: Path, parts: list[str]) -> bool:
    """True when some part of the way lies outside of the root, although its end does not."""
    return any(
        not (root / "/".join(parts[:end])).resolve().is_relative_to(root.resolve())
        for end in range(1, len(parts))
    )
