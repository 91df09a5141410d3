"""What a line's variables and folder may be, beside what bash makes of the same random line.

Each line ends simple commands with `look N`, a function that bash is given and that writes down the variables
and the folder. Where the judge says that it knows one, bash's is among what it says.
"""

from __future__ import annotations

import os
import random
import shlex
import subprocess
from pathlib import Path

import pytest

from gate_kit import workspace, world
from policy_kit import LAW
from spak.commandline import flow
from spak.commandline.commands import PROGRAMS
from spak.commandline.findings import Reading
from spak.commandline.judge import Judge
from spak.errors import UserError
from spak.shell import parse

FOLDERS = ["src", "..", "link_deep", "src/deep", "-", "link_in", "$PWD", "./src", "nothere"]
VALUES = [
    *["A", "B", "C", "$g", "$f", "${f%B}", "${f##*/}", "x/$g", "$f$g", "a/b", "{p,q}", "$((1+2))"],
    *["$(basename $f)", "$(dirname $f/x)", "'*'", "B' '"],
]
LISTS = ["1 2", "$f", "{u,v}", ""]
SIMPLE = (
    *[f"{name}={value}" for name in "fg" for value in VALUES],
    *[f"cd {folder}" for folder in FOLDERS],
    *["pushd src", "popd", "break", "continue", "break 2", "true", "false", "! true", "! cd nothere"],
    *["read f <<< S", "read -rag <<< W", "command read g <<< V", "unset f", ": ${g:=D}"],
    *["export f=X", "g+=T", "f=Q true", "f=R < nothere", "printf -v f Z", '[ -z "$f" ]', "[[ $g == A ]]"],
    "set -- f=Y",
)  # fmt: skip


def command(dice: random.Random, depth: int) -> str:
    if depth == 0 or dice.random() < 0.6:
        return "look" if dice.random() < 0.25 else dice.choice(SIMPLE)
    inner = [";".join(command(dice, depth - 1) for _ in range(dice.randint(1, 2))) for _ in range(3)]
    behind = dice.choice(["", "", " < nothere", " > src", " 2>/dev/null"])
    return dice.choice(
        [
            f"({inner[0]}){behind}",
            f"{{ {inner[0]}; }}{behind}",
            f"if {inner[0]}; then {inner[1]}; fi{behind}",
            f"if {inner[0]}; then {inner[1]}; else {inner[2]}; fi{behind}",
            f"for {dice.choice('fgi')} in {dice.choice(LISTS)}; do {inner[0]}; done{behind}",
            f"case $f in A) {inner[0]};; {dice.choice('*B')}) {inner[1]};; esac",
            f"while read l; do {inner[0]}; done < two",
        ]
    ) + dice.choice(["", "", f" && {inner[2]}", f" || {inner[2]}", f" | {{ {inner[2]}; }}"])


def line_of(seed: int) -> str:
    dice = random.Random(seed)
    text = "; ".join([*(command(dice, 2) for _ in range(4)), "look"])
    first, *rest = text.split("look")
    return first + "".join(f"look {number}{piece}" for number, piece in enumerate(rest))


class Watch(Judge):
    """Notes what is held possible at each `look`."""

    def run(self, args):  # type: ignore[no-untyped-def]
        if args[0].text == "look":
            where = {os.path.realpath(f"{self.root}/{folder}") for folder in self.folders}
            self.seen.setdefault(args[1].text, []).append((dict(self.known), where))
        super().run(args)

    root = ""
    seen: dict[str | None, list[tuple[dict[str, object], set[str]]]]


@pytest.mark.fuzz
def test_bash_has_what_the_judge_holds_possible(tmp_path: Path) -> None:
    root = workspace(tmp_path).resolve()
    (root / "two").write_text("1\n2\n")
    eyes = world(root)
    watched = {}
    form = "%s\\037" * 4 + "%s\\036"
    log = shlex.quote(str(tmp_path / "log"))
    script = f'look() {{ printf "{form}" $seed "$1" "${{f-}}" "${{g-}}" "$(pwd -P)" >> {log}; }}\n'
    for seed in range(LAW.max_examples):
        text = line_of(seed)
        judge = Watch(eyes, Reading(), PROGRAMS)
        judge.root, judge.seen = str(root), {}
        try:
            flow.walk(judge, parse(text))
        except UserError:
            continue
        lost = {"not_understood", "sets_environment"}
        if any(
            deed.kind in lost or deed.about in ("cd", "pushd", "popd")
            for deed in judge.reading.deeds
            if deed.why
        ):
            continue  # which is denied as a whole
        watched[seed] = (text, judge.seen)
        script += f"(seed={seed}; {text}\n)\n"
    (tmp_path / "script").write_text(script)
    done = subprocess.run(
        ["bash", str(tmp_path / "script")], cwd=root, env={"PATH": "/usr/bin:/bin"}, check=False,
        stdin=subprocess.DEVNULL, capture_output=True, timeout=3000,
    )  # fmt: skip
    assert b"syntax error" not in done.stderr
    rows = [row.split("\x1f") for row in (tmp_path / "log").read_text().split("\x1e")[:-1]]
    assert len(rows) > len(watched) > LAW.max_examples // 4
    known = 0
    for name, number, f, g, folder in rows:
        text, seen = watched[int(name)]
        found = [
            (state, where)
            for state, where in seen.get(number, [])
            if all(_fits(state.get(name), value) for name, value in (("f", f), ("g", g)))
        ]
        assert any(folder in where for _, where in found), (text, number, f, g, folder, seen.get(number))
        known += any(getattr(state.get("f"), "texts", ()) for state, _ in found)
    assert known > len(rows) // 20


def _fits(told: object, value: str) -> bool:
    texts = getattr(told, "texts", ())
    return not texts or value in texts or getattr(told, "here", False)
