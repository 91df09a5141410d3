"""Patches: what fits is applied exactly, everything else is refused by name and changes nothing."""

from __future__ import annotations

import difflib
import hashlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spak import canon, patch
from spak.errors import UsageError
from spak.patch import Change, PatchRefused

FILES = {
    "a.py": b"one\ntwo\nthree\nfour\nfive\n",
    "src/b.py": b"x = 1\n",
    "crlf.txt": b"one\r\ntwo\r\nthree\r\n",
    "bare": b"one\ntwo",
    "empty": b"",
    "with space": b"x\n",
}
HUNK = "@@ -1 +1 @@\n-x = 1\n+x = 2\n"
NEW = "--- /dev/null\n+++ b/d\n@@ -0,0 +1 @@\n+x\n"
GOOD = "--- a/src/b.py\n+++ b/src/b.py\n" + HUNK


def after(text: str, files: dict[str, bytes] = FILES) -> dict[str, bytes | None]:
    changes = patch.apply(text, files.get)
    assert not isinstance(changes, PatchRefused), changes
    return {change.path: change.after for change in changes}


def code(text: str, files: dict[str, bytes] = FILES) -> str:
    refused = patch.apply(text, files.get)
    assert isinstance(refused, PatchRefused), refused
    assert refused.message
    return refused.code.removeprefix("patch.")


def unified(old: bytes, new: bytes, context: int = 3) -> str:
    """A diff by difflib, with the mark that it leaves out at a last line without its end."""
    rows = difflib.unified_diff(
        old.decode().splitlines(keepends=True) if old else [],
        new.decode().splitlines(keepends=True) if new else [],
        "a/f",
        "b/f",
        n=context,
    )
    return "".join(row if row.endswith("\n") else row + "\n\\ No newline at end of file\n" for row in rows)


LINES = st.lists(st.sampled_from(["a", "b", "c", "", "-- x", "++ y", "@@ z"]), max_size=12).map("\n".join)


@given(LINES, LINES, st.sampled_from(["", "\n"]), st.sampled_from(["", "\n"]))
def test_a_diff_gives_the_new_file(one: str, two: str, one_end: str, two_end: str) -> None:
    old, new = (one + one_end).encode(), (two + two_end).encode()
    text = unified(old, new)
    if text:
        assert after(text, {"f": old}) == {"f": new}


@given(LINES, LINES, LINES)
def test_an_anchored_diff_fits_its_own_file_only(one: str, two: str, other: str) -> None:
    old, new, now = ((text + "\n").encode() for text in (one, two, other))
    text = unified(old, new)
    if text and now != old:
        assert code(text.replace("@@", f"before-hash {canon.digest(old)}\n@@", 1), {"f": now}) == "hash"


@given(LINES, LINES, LINES)
def test_a_diff_changes_no_line_but_its_own(one: str, two: str, other: str) -> None:
    old, new, now = ((text + "\n").encode() for text in (one, two, other))
    text = unified(old, new, context=99)
    result = patch.apply(text, {"f": now}.get)
    if text and isinstance(result, tuple):
        assert now.startswith(old)
        assert result[0].after == new + now[len(old) :]


@given(st.text())
def test_any_text_is_a_patch_or_refused(text: str) -> None:
    for candidate in (text, GOOD + text, "{" + text, "diff --git " + text, "--- a\n+++ " + text):
        result = patch.apply(candidate, FILES.get)
        assert isinstance(result, PatchRefused | tuple)


def test_good_patches_are_applied_exactly() -> None:
    assert after(GOOD) == {"src/b.py": b"x = 2\n"}
    assert after("--- src/b.py\n+++ src/b.py\n" + HUNK) == {"src/b.py": b"x = 2\n"}
    assert after("--- a/src/b.py\t2024-01-01\n+++ b/src/b.py\t2024-01-02\n" + HUNK) == {
        "src/b.py": b"x = 2\n"
    }
    assert after("A mail.\n\n---\n b.py | 2 +-\n\n" + GOOD + "-- \n2.39.0\n") == {"src/b.py": b"x = 2\n"}
    assert after("```diff\n" + GOOD + "```\n") == {"src/b.py": b"x = 2\n"}
    assert after(GOOD.replace("\n", "\r\n")) == {"src/b.py": b"x = 2\n"}
    assert after("--- a/with space\n+++ b/with space\n@@ -1 +1 @@\n-x\n+y\n") == {"with space": b"y\n"}
    assert after('--- "a/with\\040space"\n+++ "b/with space"\n@@ -1 +1 @@\n-x\n+y\n') == {
        "with space": b"y\n"
    }
    two = "@@ -1,2 +1,3 @@ def f\n one\n+1.5\n two\n@@ -4,2 +5 @@\n four\n-five\n"
    assert after("--- a/a.py\n+++ b/a.py\n" + two) == {"a.py": b"one\n1.5\ntwo\nthree\nfour\n"}


def test_files_are_made_deleted_renamed_and_change_mode() -> None:
    assert after("--- /dev/null\n+++ b/n/new.py\n@@ -0,0 +1,2 @@\n+x\n+y\n") == {"n/new.py": b"x\ny\n"}
    assert after("diff --git a/e b/e\nnew file mode 100644\nindex 0000000..e69de29\n") == {"e": b""}
    assert after("--- a/src/b.py\n+++ /dev/null\n@@ -1 +0,0 @@\n-x = 1\n") == {"src/b.py": None}
    gone = "diff --git a/empty b/empty\ndeleted file mode 100644\nindex e69de29..0000000\n"
    assert after(gone) == {"empty": None}
    moved = "diff --git a/src/b.py b/c.py\nsimilarity index 100%\nrename from src/b.py\nrename to c.py\n"
    assert after(moved) == {"src/b.py": None, "c.py": b"x = 1\n"}
    edited = moved + "--- a/src/b.py\n+++ b/c.py\n" + HUNK
    assert after(edited) == {"src/b.py": None, "c.py": b"x = 2\n"}
    mode = "diff --git a/src/b.py b/src/b.py\nold mode 100644\nnew mode 100755\n"
    assert patch.apply(mode, FILES.get) == (Change("src/b.py", canon.digest(b"x = 1\n"), b"x = 1\n", 0o755),)
    changes = patch.apply(moved, FILES.get)
    assert isinstance(changes, tuple) and changes[1].source == "src/b.py"


def test_line_ends_are_kept() -> None:
    plain = "--- a/crlf.txt\n+++ b/crlf.txt\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n"
    assert after(plain) == {"crlf.txt": b"one\r\n2\r\nthree\r\n"}
    assert after(
        plain.replace("one\n", "one\r\n").replace("two\n", "two\r\n").replace("2\n", "2\r\n", 9)
    ) == {"crlf.txt": b"one\r\n2\r\nthree\r\n"}
    assert after(plain.replace("\n", "\r\n")) == {"crlf.txt": b"one\r\n2\r\nthree\r\n"}
    ended = "--- a/bare\n+++ b/bare\n@@ -1,2 +1,2 @@\n one\n-two\n\\ No newline at end of file\n+2\n"
    assert after(ended) == {"bare": b"one\n2\n"}
    assert after(ended + "\\ No newline at end of file\n") == {"bare": b"one\n2"}


def test_all_files_or_none() -> None:
    bad = "--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-nine\n+ten\n"
    refused = patch.apply(GOOD + bad, FILES.get)
    assert isinstance(refused, PatchRefused)
    assert (refused.code, refused.line, refused.path) == ("patch.mismatch", 8, "a.py")
    assert "line 1 is 'one\\n'" in refused.hint
    moved = patch.apply("--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-three\n+3\n", FILES.get)
    assert isinstance(moved, PatchRefused) and "at line 3" in moved.hint


@pytest.mark.parametrize(
    "path",
    [
        "/etc/passwd",
        "../x",
        "src/../../x",
        "src/../b.py",
        "./x",
        "src//b.py",
        "src/",
        ".git/config",
        ".GIT/hooks/pre-commit",
        "sub/.git/config",
        ".git",
        ".git./config",
        ".g\u200cit/config",
        ".git::$INDEX_ALLOCATION/x",
        "GIT~1/config",
        "..\\x",
        "a\x01b",
        "x" * 300,
        "",
    ],
)
def test_hostile_paths(path: str) -> None:
    new = f"--- /dev/null\n+++ b/{path}\n@@ -0,0 +1 @@\n+x\n"
    assert code(new) == "path"
    assert code(new.replace("b//", "/")) == "path"
    assert code(f"--- a/{path}\n+++ b/{path}\n" + HUNK) == "path"
    assert code(GOOD + new) == "path"
    assert code(f"--- a/{path}\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n") == "path"
    head = f"diff --git a/src/b.py b/{path}\nrename from src/b.py\nrename to {path}\n"
    assert code(head) in ("path", "names")
    assert code(json.dumps({"path": path, "after_content": "x", "after_hash": canon.digest(b"x")})) == "path"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "empty"),
        ("no patch at all", "empty"),
        ("x" * (1 << 20) + "y", "too_large"),
        (GOOD + "\0", "binary"),
        (GOOD.replace("-x = 1", "-x = 3"), "mismatch"),
        (GOOD.replace("-1 ", "-2 "), "mismatch"),
        (GOOD.replace("+1 ", "+2 "), "hunk"),
        (GOOD.replace("-1 ", "-1,2 "), "hunk"),
        (GOOD.replace("+1 ", "+1,2 "), "hunk"),
        (GOOD.replace("-1 ", "-0 "), "hunk"),
        (GOOD.replace("-1 ", "-99999999999999999999 "), "hunk"),
        (GOOD.replace("@@ -1", "@@ --1"), "hunk"),
        (GOOD.replace("-1 +1", "-0,0 +0,0"), "hunk"),
        (GOOD + "+y\n", "syntax"),
        (GOOD + " y\n", "syntax"),
        (GOOD + " \n", "syntax"),
        (GOOD + "some prose\n+y\n", "syntax"),
        (GOOD + "\n-y\n", "syntax"),
        (GOOD + "-- \nno version\n+y\n", "syntax"),
        (GOOD + "Binary files a/x and b/x differ\n", "binary"),
        ("diff --cc a.py\n--- a/a.py\n+++ b/a.py\n@@@ -1,1 -1,1 +1,1 @@@\n++x\n", "unsupported"),
        ("*** a.py 2026\n--- b.py 2026\n***************\n*** 1 ****\n! x\n--- 1 ----\n! y\n", "unsupported"),
        ("1c1\n< x\n---\n> y\n", "unsupported"),
        (GOOD[: GOOD.index("+x")], "hunk"),
        (HUNK, "syntax"),
        ("--- a/src/b.py\n+++ b/src/b.py\n", "syntax"),
        ("--- a/src/b.py\n" + HUNK, "syntax"),
        (GOOD + GOOD, "duplicate"),
        (GOOD.replace("+++ b/src/b.py", "+++ b/a.py"), "names"),
        ("diff --git a/a.py b/a.py\n" + GOOD, "names"),
        ("diff --git a/x y b/z\nold mode 100644\nnew mode 100755\n", "names"),
        ("--- /dev/null\n+++ b/a.py\n@@ -0,0 +1 @@\n+x\n", "exists"),
        ("--- a/no\n+++ b/no\n" + HUNK, "missing"),
        ("--- a/no\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n", "missing"),
        ("--- /dev/null\n+++ /dev/null\n@@ -0,0 +1 @@\n+x\n", "names"),
        ("--- a/a.py\n+++ /dev/null\n@@ -1 +0,0 @@\n-one\n", "mismatch"),
        ("diff --git a/a.py b/a.py\ndeleted file mode 100644\n", "unanchored"),
        ("--- a/a.py\n+++ b/a.py\n@@ -2,0 +3 @@\n+x\n", "unanchored"),
        ("--- a/a.py\n+++ b/a.py\n@@ -4 +4 @@\n-four\n+4\n@@ -1 +1 @@\n-one\n+1\n", "overlap"),
        ("--- a/a.py\n+++ b/a.py\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n@@ -2 +2 @@\n-two\n+3\n", "overlap"),
        ("--- a/bare\n+++ b/bare\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n", "mismatch"),
        (
            "--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-one\n+1\n\\ No newline at end of file\n",
            "hunk",
        ),
        ("diff --git a/l b/l\nnew file mode 120000\n--- /dev/null\n+++ b/l\n@@ -0,0 +1 @@\n+/etc\n", "mode"),
        ("diff --git a/m b/m\nnew file mode 160000\n", "mode"),
        ("diff --git a/m b/m\nnew file mode 104755\n", "mode"),
        ("diff --git a/m b/m\nnew file mode 020666\n", "mode"),
        ("diff --git a/a.py b/a.py\nold mode 120000\nnew mode 100644\n", "mode"),
        ("diff --git a/a.py b/a.py\nindex 123..456 120000\n" + GOOD, "mode"),
        ("diff --git a/a.py b/a.py\nindex 123..456\nGIT binary patch\nliteral 1\n", "binary"),
        ("diff --git a/a.py b/a.py\nBinary files a/a.py and b/a.py differ\n", "binary"),
        ("diff --git a/a.py b/c.py\ncopy from a.py\ncopy to d.py\n", "names"),
        ("diff --git a/a.py b/empty\ncopy from a.py\ncopy to empty\n", "exists"),
        ("diff --git a/a.py b/empty\nrename from a.py\nrename to empty\n", "exists"),
        (NEW + NEW.replace("b/d", "b/d/e"), "duplicate"),
        ('--- "a/x\\q"\n+++ "b/x\\q"\n' + HUNK, "path"),
        ('--- "a/x\\377"\n+++ "b/x\\377"\n' + HUNK, "path"),
    ],
)  # fmt: skip
def test_hostile_forms(text: str, expected: str) -> None:
    assert code(text) == expected


def test_headers_carry_anchors() -> None:
    old, new = FILES["src/b.py"], b"x = 2\n"
    anchors = f"before-hash sha256:{hashlib.sha256(old).hexdigest()}\nafter-hash {canon.digest(new)}\n"
    anchored = GOOD.replace("@@ -1", anchors + "@@ -1")
    assert after(anchored) == {"src/b.py": new}
    assert after("diff --git a/src/b.py b/src/b.py\n" + anchors + GOOD) == {"src/b.py": new}
    assert code(anchored.replace(canon.digest(new), canon.digest(old))) == "hash"
    assert code(anchored, {"src/b.py": b"x = 1\n\n"}) == "hash"
    assert code(GOOD.replace("@@ -1", "after-hash nonsense\n@@ -1")) == "hash"
    free = f"--- a/a.py\n+++ b/a.py\nbefore-hash {canon.digest(FILES['a.py'])}\n@@ -2,0 +3 @@\n+x\n"
    assert after(free) == {"a.py": b"one\ntwo\nx\nthree\nfour\nfive\n"}


def full(path: str, content: str, **more: Any) -> dict[str, Any]:
    return {"path": path, "after_content": content, "after_hash": canon.digest(content.encode()), **more}


def hunk(before: str, then: str, **more: Any) -> dict[str, Any]:
    hashes = {"before_hash": canon.digest(before.encode()), "after_hash": canon.digest(then.encode())}
    return {"before": before, "after": then, **hashes, **more}


def test_the_patch_object() -> None:
    known = canon.digest(FILES["a.py"])
    assert after(json.dumps(full("src/b.py", "y"))) == {"src/b.py": b"y"}
    assert after(json.dumps(full("n", "é\n", before_hash=None, mode="100755"))) == {"n": "é\n".encode()}
    assert after(json.dumps(full("a.py", "", before_hash=known))) == {"a.py": b""}
    two = [hunk("one\n", "1\n", line=1), hunk("four\n", "4\n4.5\n")]
    files = {"files": [{"path": "a.py", "hunks": two, "before_hash": known}, full("new", "x")]}
    assert after(json.dumps(files)) == {"a.py": b"1\ntwo\nthree\n4\n4.5\nfive\n", "new": b"x"}
    assert after(json.dumps({"path": "a.py", "delete": True, "before_hash": known})) == {"a.py": None}
    moved = {"path": "z.py", "rename_from": "a.py", "before_hash": known}
    assert after(json.dumps(moved)) == {"a.py": None, "z.py": FILES["a.py"]}


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({}, "schema"),
        ([], "schema"),
        ({"files": []}, "empty"),
        ({"files": 1}, "schema"),
        ({"files": [1]}, "schema"),
        ({"files": [], "extra": 1}, "schema"),
        ({"path": "a.py"}, "schema"),
        ({"path": "a.py", "after_content": "x"}, "schema"),
        ({"path": "a.py", "after_content": "x", "after_hash": "zzz"}, "hash"),
        (full("a.py", "x", after_hash=canon.digest(b"y")), "hash"),
        (full("a.py", "x", before_hash=canon.digest(b"y")), "hash"),
        (full("a.py", "x", before_hash=None), "exists"),
        (full("no", "x", before_hash=canon.digest(b"y")), "missing"),
        (full("a.py", "x", surprise=1), "schema"),
        (full("a.py", "x", delete=True), "schema"),
        (full("a.py", "x", mode="120000"), "mode"),
        ({"path": "a.py", "delete": True}, "schema"),
        ({"path": "a.py", "hunks": []}, "schema"),
        ({"path": "a.py", "hunks": [{"before": "one\n", "after": "1\n"}]}, "schema"),
        ({"path": "a.py", "hunks": [hunk("one\n", "1\n", after_hash=canon.digest(b""))]}, "hash"),
        ({"path": "a.py", "hunks": [hunk("one\n", "1\n", line=2)]}, "mismatch"),
        ({"path": "a.py", "hunks": [hunk("one\n", "1\n", line=True)]}, "schema"),
        ({"path": "a.py", "hunks": [hunk("one\n", "1\n", line=0)]}, "hunk"),
        ({"path": "a.py", "hunks": [hunk("ne\n", "1\n")]}, "mismatch"),
        ({"path": "a.py", "hunks": [hunk("", "1\n")]}, "unanchored"),
        ({"path": "a.py", "hunks": [hunk("one\n", "1\n"), hunk("one\n", "2\n")]}, "overlap"),
        ({"files": [full("a.py", "x"), full("a.py", "y")]}, "duplicate"),
    ],
)
def test_hostile_objects(value: object, expected: str) -> None:
    assert code(json.dumps(value)) == expected


def test_text_that_is_not_text() -> None:
    assert code(GOOD.replace("x = 2", "\ud800")) == "text"
    half = {"path": "a.py", "after_content": "\ud800", "after_hash": canon.digest(b"")}
    assert code(json.dumps(half)) == "text"


def test_objects_that_two_readers_read_differently() -> None:
    assert code('{"path": "a.py", "path": "b.py"}') == "schema"
    assert code('{"path": "a.py"') == "syntax"
    assert code("[" * 100_000) == "syntax"


def test_a_hunk_without_a_line_must_be_unique() -> None:
    files = {"f": b"a\nb\na\n"}
    text = json.dumps({"path": "f", "hunks": [hunk("a\n", "c\n")]})
    refused = patch.apply(text, files.get)
    assert isinstance(refused, PatchRefused) and "twice" in refused.message


def test_a_reader_that_refuses_refuses_the_patch() -> None:
    def read(path: str) -> bytes | None:
        raise UsageError("path.outside", "the path leaves the workspace", "mend it")

    refused = patch.apply(GOOD, read)
    assert isinstance(refused, PatchRefused)
    assert (refused.code, refused.hint, refused.path) == ("path.outside", "mend it", "src/b.py")


def test_read_patch_names_the_targets_without_reading() -> None:
    files = patch.read_patch("--- a/no\n+++ b/no\n" + HUNK)
    assert not isinstance(files, PatchRefused)
    assert [(file.path, file.kind) for file in files] == [("no", "modify")]
