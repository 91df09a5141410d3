"""Patches as other tools write them, under any of their settings: git's, GNU diff's, hg's and svn's.

git and diff are the installed ones; what hg and svn write is written out, as their books show it. In each `a`
and `dir/b` are changed, `gone` is removed and `new` is made.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from spak import patch
from spak.patch import Change, PatchRefused

OLD = {
    "a": b"one\ntwo\nthree\n",
    "dir/b": b"red\ngreen\n",
    "gone": b"gone\n",
    "long": b"".join(b"line %d\n" % number for number in range(30)),
}
NEW: dict[str, bytes | None] = {
    "a": b"one\nTWO\nthree\n",
    "dir/b": b"red\nblue\n",
    "gone": None,
    "new": b"new\nfile\n",
}


def applied(text: str, files: dict[str, bytes] | None = None) -> dict[str, bytes | None]:
    changes = patch.apply(text, (OLD if files is None else files).get)
    assert not isinstance(changes, PatchRefused), (changes, text)
    return {change.path: change.after for change in changes}


def write(folder: Path, files: dict[str, bytes] | dict[str, bytes | None]) -> None:
    for name, data in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        if data is None:
            (folder / name).unlink(missing_ok=True)
        else:
            (folder / name).write_bytes(data)


def git(folder: Path, *args: str) -> str:
    named = ("-c", "user.name=n", "-c", "user.email=n@example.org")
    env = {**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null", "LC_ALL": "C"}
    return subprocess.check_output(["git", *named, *args], cwd=folder, env=env, text=True)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    git(tmp_path, "init", "-q")
    write(tmp_path, OLD)
    git(tmp_path, "add", "-A")
    git(tmp_path, "commit", "-qm", "Begin\n\n- a line of a list\n+ and another")
    write(tmp_path, NEW)
    git(tmp_path, "add", "-A")
    return tmp_path


SETTINGS = {
    "as it comes": (),
    "no prefix": ("diff.noprefix=true",),
    "mnemonic": ("diff.mnemonicPrefix=true",),
    "own prefixes": ("diff.srcPrefix=old/", "diff.dstPrefix=new/"),
    "colours": ("color.ui=always",),
    "moved lines in colour": ("color.ui=always", "diff.colorMoved=zebra"),
    "stripped blanks": ("diff.suppressBlankEmpty=true",),
    "no context": ("diff.context=0",),
    "patience": ("diff.algorithm=patience", "diff.indentHeuristic=false"),
    "copies": ("diff.renames=copies",),
    "everything": ("color.ui=always", "diff.mnemonicPrefix=true", "diff.suppressBlankEmpty=true"),
}


@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
def test_git_under_any_of_its_settings(repository: Path, settings: tuple[str, ...]) -> None:
    set_up = [part for setting in settings for part in ("-c", setting)]
    assert applied(git(repository, *set_up, "diff", "--cached")) == NEW
    assert applied(git(repository, *set_up, "diff", "--cached", "--stat", "-p")) == NEW
    git(repository, *set_up, "commit", "-qm", "Change\n\n- one thing\n+ another\n--- and\n@@ more")
    for shown in (("show",), ("show", "--oneline"), ("log", "-p", "-1"), ("format-patch", "-1", "--stdout")):
        assert applied(git(repository, *set_up, *shown)) == NEW, shown


def test_renames_and_copies_keep_their_content(repository: Path) -> None:
    git(repository, "reset", "-q", "--hard")
    git(repository, "mv", "long", "moved")
    write(repository, {"moved": OLD["long"] + b"more\n"})
    git(repository, "add", "-A")
    wanted: dict[str, bytes | None] = {"long": None, "moved": OLD["long"] + b"more\n"}
    for flags in ((), ("--no-prefix",), ("--src-prefix=x/", "--dst-prefix=y/")):
        assert applied(git(repository, "diff", "--cached", "-M", *flags)) == wanted
    git(repository, "reset", "-q", "--hard")
    write(repository, {"copy": OLD["long"], "other": OLD["long"] + b"more\n"})
    git(repository, "add", "-A")
    text = git(repository, "diff", "--cached", "-C", "--find-copies-harder")
    assert "copy from long" in text
    assert applied(text) == {"copy": OLD["long"], "other": OLD["long"] + b"more\n"}


def test_a_series_is_applied_in_its_order(repository: Path) -> None:
    git(repository, "commit", "-qm", "Second")
    write(repository, {"a": b"one\nTWO\nTHREE\n", "new": None, "dir/b": b"red\nblue\nblack\n"})
    git(repository, "add", "-A")
    git(repository, "commit", "-qm", "Third")
    wanted = {"a": b"one\nTWO\nTHREE\n", "dir/b": b"red\nblue\nblack\n", "gone": None}
    assert applied(git(repository, "format-patch", "-2", "--stdout")) == wanted
    assert applied(git(repository, "log", "-p", "-2", "--reverse")) == wanted
    changes = patch.apply(git(repository, "format-patch", "-2", "--stdout"), OLD.get)
    assert isinstance(changes, tuple) and all(isinstance(change, Change) for change in changes)
    assert applied(git(repository, "log", "-p", "-2")) == wanted  # the newest first
    other = {**OLD, "a": b"another\n"}
    refused = patch.apply(git(repository, "log", "-p", "-2", "--reverse"), other.get)
    assert isinstance(refused, PatchRefused) and refused.code == "patch.mismatch"


@pytest.mark.parametrize(
    "zone", ["UTC", "Europe/Berlin", "America/St_Johns", "Asia/Kolkata", "Pacific/Auckland"]
)
@pytest.mark.parametrize("flags", [("-ruN",), ("-ruN", "-U0"), ("-ruNp",), ("-rU1", "-N")], ids=" ".join)
def test_gnu_diff_of_two_folders(tmp_path: Path, flags: tuple[str, ...], zone: str) -> None:
    write(tmp_path / "old", OLD)
    write(tmp_path / "new", {**OLD, **NEW})
    env = {**os.environ, "TZ": zone, "LC_ALL": "C"}
    done = subprocess.run(
        ["diff", *flags, "old", "new"], cwd=tmp_path, env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1 and "1970-01-01" in done.stdout + "1970-01-01" * ("-12-31" in done.stdout)
    assert applied(done.stdout) == NEW


def test_gnu_diff_that_leaves_out_new_files(tmp_path: Path) -> None:
    write(tmp_path / "old", OLD)
    write(tmp_path / "new", {**OLD, **NEW})
    done = subprocess.run(
        ["diff", "-ru", "old", "new"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert "Only in new: new" in done.stdout
    assert applied(done.stdout) == {name: NEW[name] for name in ("a", "dir/b")}


def test_a_file_that_was_emptied_is_not_deleted(tmp_path: Path) -> None:
    """What stands behind the name is a time, and not that of the epoch."""
    stamp = "2026-11-28 22:37:26.492968767 +0000"
    text = f"--- a/gone\t{stamp}\n+++ b/gone\t{{}}\n@@ -1 +0,0 @@\n-gone\n"
    assert applied(text.format(stamp)) == {"gone": b""}
    for epoch in (
        *("1970-01-01 00:00:00.000000000 +0000", "1970-01-01 01:00:00 +0100", "1969-12-31 20:30:00 -0330"),
        *("Thu Jan  1 01:00:00 1970", "Wed Dec 31 19:00:00 1969 -0500", "(nonexistent)"),
    ):
        assert applied(text.format(epoch)) == {"gone": None}, epoch
    for other in ("1970-01-01 01:00:00 +0000", "1970-01-02 00:00:00 +0000", "Thu Jan  1 01:00:00 2026", "x"):
        assert applied(text.format(other)) == {"gone": b""}, other


HG = """\
# HG changeset patch
# User n <n@example.org>
# Date 1795860000 0
#      Sat Nov 28 22:00:00 2026 +0000
# Node ID 9117c6561b0bd24d9d9a0b8c5f2e7a3f1d2c3b4a
# Parent  0000000000000000000000000000000000000000
Change things

- one thing
+ another

diff -r 9117c6561b0b -r 0123456789ab a
--- a/a\tThu Jan 01 00:00:00 1970 +0000
+++ b/a\tSat Nov 28 22:00:00 2026 +0000
@@ -1,3 +1,3 @@
 one
-two
+TWO
 three
diff -r 9117c6561b0b -r 0123456789ab dir/b
--- a/dir/b\tThu Jan 01 00:00:00 1970 +0000
+++ b/dir/b\tSat Nov 28 22:00:00 2026 +0000
@@ -1,2 +1,2 @@
 red
-green
+blue
diff -r 9117c6561b0b -r 0123456789ab gone
--- a/gone\tThu Jan 01 00:00:00 1970 +0000
+++ /dev/null\tThu Jan 01 00:00:00 1970 +0000
@@ -1,1 +0,0 @@
-gone
diff -r 9117c6561b0b -r 0123456789ab new
--- /dev/null\tThu Jan 01 00:00:00 1970 +0000
+++ b/new\tSat Nov 28 22:00:00 2026 +0000
@@ -0,0 +1,2 @@
+new
+file
"""
SVN = """\
Index: a
===================================================================
--- a\t(revision 1)
+++ a\t(working copy)
@@ -1,3 +1,3 @@
 one
-two
+TWO
 three

Property changes on: a
___________________________________________________________________
Added: svn:executable
## -0,0 +1 ##
+*
\\ No newline at end of property
Index: dir/b
===================================================================
--- dir/b\t(revision 1)
+++ dir/b\t(working copy)
@@ -1,2 +1,2 @@
 red
-green
+blue
Index: gone
===================================================================
--- gone\t(revision 1)
+++ gone\t(nonexistent)
@@ -1 +0,0 @@
-gone
Index: new
===================================================================
--- new\t(nonexistent)
+++ new\t(working copy)
@@ -0,0 +1,2 @@
+new
+file
"""


@pytest.mark.parametrize(
    "text",
    [HG, HG[HG.index("diff -r") :], SVN, SVN.replace("\n", "\r\n"), f"\ufeff{SVN}"],
    ids=["hg export", "hg diff", "svn", "svn on Windows", "with a mark"],
)
def test_hg_and_svn(text: str) -> None:
    assert applied(text) == NEW


DIFF = "--- a/a\n+++ b/a\n@@ -1,3 +1,3 @@\n one\n-two\n+TWO\n three\n"
SECOND = "--- a/dir/b\n+++ b/dir/b\n@@ -1,2 +1,2 @@\n red\n-green\n+blue\n"


@pytest.mark.parametrize(
    "answer",
    [
        f"Here is the fix:\n\n```diff\n{DIFF}```\n\nIt changes\n- one word\n+ and nothing else.\n",
        f"~~~\n{DIFF}~~~\nDone.\n",
        f"<think>\nMaybe --- a/x\n+++ b/x\n@@ -1 +1 @@\n</think>\n\n```diff\n{DIFF}```\n",
        f"The user wants TWO.\n</think>\n{DIFF}",
        f"\ufeff```\r\n{DIFF}```",
        DIFF,
    ],
    ids=["prose", "tildes", "thinking", "the end of thinking", "a mark", "bare"],
)
def test_an_answer_that_its_writer_wrapped(answer: str) -> None:
    assert applied(answer) == {"a": NEW["a"]}


@pytest.mark.parametrize(
    ("mine", "theirs"),
    [
        ("dir/b.orig", "dir/b"), ("dir/b", "dir/b.new"), ("dir/b~", "dir/b"), ("dir/b", "../fixed/b"),
        ("/home/you/kept/b", "dir/b"), ("old/dir/b", "new/dir/b.orig"), ("./dir/b", "./dir/b.bak"),
        ("./dir/b", "../new/dir/b"), ("../old/dir/b", "./dir/b"),
    ],
)  # fmt: skip
def test_gnu_diff_against_a_copy_of_one_file(mine: str, theirs: str) -> None:
    stamp = "\t2026-11-30 12:20:48.018435318 +0000"
    text = f"--- {mine}{stamp}\n+++ {theirs}{stamp}\n@@ -1,2 +1,2 @@\n red\n-green\n+blue\n"
    assert applied(text) == {"dir/b": b"red\nblue\n"}


@pytest.mark.parametrize(
    ("mine", "theirs"),
    [
        ("dir/b", "dir/bb"),
        ("dir/b", "dir/b/c"),
        ("dir/b", "../a"),
        ("../dir/b", "../new/b"),
        ("a", "dir/a.b.c"),
    ],
)
def test_two_names_that_are_not_one_file_and_its_copy_are_refused(mine: str, theirs: str) -> None:
    found = patch.apply(f"--- {mine}\n+++ {theirs}\n@@ -1 +1 @@\n-red\n+blue\n", OLD.get)
    assert isinstance(found, PatchRefused)


def test_the_log_of_svn_with_its_diffs() -> None:
    rule = "-" * 72
    head = " | you | 2026-11-30 12:25:14 +0000 (Mon, 30 Nov 2026) | 2 lines\n\n- a list\n+ of two\n\n"

    def commit(revision: int, name: str, old: str, new: str) -> str:
        rows = f"--- {name}\t(revision {revision - 1})\n+++ {name}\t(revision {revision})\n"
        return f"{rule}\nr{revision}{head}Index: {name}\n{'=' * 67}\n{rows}@@ -1 +1 @@\n-{old}\n+{new}\n\n"

    text = commit(2, "c", "one", "two") + commit(3, "c", "two", "three") + rule + "\n"
    assert applied(text, {"c": b"one\n"}) == {"c": b"three\n"}
    newest = commit(3, "c", "two", "three") + commit(2, "c", "one", "two") + rule + "\n"
    assert applied(newest, {"c": b"one\n"}) == {"c": b"three\n"}
    stray = commit(2, "c", "one", "two") + rule + "\n-more\n"
    assert isinstance(patch.apply(stray, {"c": b"one\n"}.get), PatchRefused)


def test_a_diff_of_one_text_may_call_it_anything() -> None:
    new = "one\nTWO\nthree\n"
    heads = ("--- o.spak\n+++ n.spak\n", "--- x/a\t2026-01-01\n+++ /tmp/b\n", "--- /dev/null\n+++ b/a\n")
    for head in heads:
        assert patch.apply_to(head + DIFF.partition("+++ b/a\n")[2], OLD["a"].decode()) == new
    assert patch.apply_to(f"diff --git a/x b/y\nrename from x\nrename to y\n{DIFF}", OLD["a"].decode()) == new
    refused = patch.apply_to(DIFF + SECOND, OLD["a"].decode())
    assert isinstance(refused, PatchRefused) and refused.code == "patch.duplicate"


def test_two_fences_are_two_patches() -> None:
    answer = f"First:\n```diff\n{DIFF}```\nThen:\n```diff\n{SECOND}```\n"
    assert applied(answer) == {"a": NEW["a"], "dir/b": NEW["dir/b"]}
    again = DIFF.replace("-two", "-TWO").replace("+TWO", "+2")
    assert applied(f"```\n{DIFF}```\nand\n```\n{again}```\n") == {"a": b"one\n2\nthree\n"}


@pytest.mark.parametrize("stray", ["+more\n", "-more\n", " more\n", "\n+more\n", "Prose.\n+more\n"])
def test_a_hunk_that_counts_too_few_lines_is_refused(stray: str) -> None:
    for text in (DIFF + stray, DIFF + stray + SECOND):
        refused = patch.apply(text, OLD.get)
        assert isinstance(refused, PatchRefused) and refused.code == "patch.syntax", text
