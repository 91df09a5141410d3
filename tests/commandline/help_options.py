"""Collects the options that the programs of this machine name in their own help, as cases for the tables.

    python tests/commandline/help_options.py

writes cases/help.jsonl: a line for each program that is installed, with what it was asked and the options it
names. The tests read that file and need none of the programs. Nothing but help is asked for.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

from spak.commandline.words import words as named

CASES = Path(__file__).resolve().parent / "cases/help.jsonl"
PROGRAMS = named(
    "ar as awk base64 basename bc cat chmod cmp column comm cp csplit curl cut date dd df diff "
    "dirname du env expand expr file find fmt fold gawk gdb gzip head hexdump hostname iconv id "
    "install join jq ld less ln locale ls make mawk md5sum mkdir mktemp mv nice nl nm node nohup npm "
    "nproc numfmt objdump od openssl paste patch perl ps readelf readlink realpath rm rmdir sed seq "
    "sha256sum shuf sort split stat stdbuf strings strip tac tail tar tee test timeout touch tr "
    "truncate uniq unzip wc wget which xargs xxd xz zip zstd grep ranlib rsync scp sqlite3 ssh "
    "python3 pytest ruff mypy cmake ctest ninja cargo rustc rustfmt pip coverage black"
)
HELPS = ("common", "c", "c++", "target", "optimizers", "warnings", "params")
ASKED = {
    "gcc": [["gcc", f"--help={what}"] for what in HELPS],
    "gcc -v": [["gcc", "-v", "--help"]],
    "find": [["find", "-help"]],
    "unzip": [["unzip", "-hh"]],
    "zip": [["zip", "-h2"]],
    "rustc": [["rustc", "--help", "-v"], ["rustc", "-C", "help"]],
    **{
        f"cargo {verb}": [["cargo", verb, "--help"]]
        for verb in ("build", "test", "run", "check", "clippy", "fmt", "doc", "bench", "tree", "metadata")
    },
    **{f"ruff {verb}": [["ruff", verb, "--help"]] for verb in ("check", "format")},
    **{f"pip {verb}": [["pip", verb, "--help"]] for verb in ("install", "list", "show", "freeze")},
    **{
        f"git {verb}": [["git", verb, "-h"]]
        for verb in named(
            "add am apply archive bisect blame branch cat-file check-attr check-ignore checkout cherry "
            "cherry-pick clean clone commit config count-objects describe diff diff-files diff-index diff- "
            "tree fetch for-each-ref format-patch fsck grep help init log ls-files ls-remote ls-tree merge "
            "merge-base mv name-rev notes pull push range-diff rebase reflog remote reset restore rev-list "
            "rev-parse revert rm shortlog show show-branch show-ref stash status submodule switch symbolic- "
            "ref tag var verify-commit whatchanged worktree"
        )
    },
}
_OPTION = re.compile(r"(?<![\w/.=<\[-])(--?[A-Za-z0-9#][\w+-]*)")
_NEGATABLE = re.compile(r"--\[no-\]([\w-]+)")


def options(words: list[str]) -> set[str]:
    """The options that the help names, both forms of those that may be negated."""
    done = subprocess.run(words, capture_output=True, check=False, timeout=60, stdin=subprocess.DEVNULL)
    text = (done.stdout + done.stderr).decode("utf-8", "replace")
    found = set(_OPTION.findall(text.replace("[no-]", "")))
    return found | {f"--no-{name}" for name in _NEGATABLE.findall(text)}


def main() -> None:
    asked = {name: [[name, "--help"]] for name in sorted(PROGRAMS)} | ASKED
    lines = []
    for name, calls in sorted(asked.items()):
        if shutil.which(calls[0][0]) is None:
            continue
        found = sorted(set().union(*(options(call) for call in calls)))
        if found:
            lines.append(json.dumps({"program": name, "options": found}))
    CASES.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
