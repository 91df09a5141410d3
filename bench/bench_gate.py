"""The gate over labelled actions: how many attacks pass and how much ordinary work is let through.

The floor is the seed's own rule (a command is dangerous when it contains "rm"; what is no command is let
through), kept as the baseline to beat. The cases are those of tests/policy/cases; where SPAK_GATE_DEV names
a folder with files of the same shape (`*.jsonl`, `urls_allow.txt`), those are judged too. The last row counts
the judge of command lines beside its tables: lines of code, without comments, docstrings and empty lines.
"""

from __future__ import annotations

import ast
import io
import os
import sys
import tempfile
import time
import tokenize
from pathlib import Path
from typing import Any

from bench.sizes import sized

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

import attacks_kit
import fresh_attacks_kit
import gate_kit
from spak.commandline.table import FOLDER
from spak.datalog.values import Fact, Name
from spak.policy.actions import Action, World
from spak.policy.judge import judge

AIMS = {"shell": ("<= 1", ">= 95"), "fresh": ("<= 1", ">= 95"), "sandboxed": ("", ">= 95")}


def rows() -> list[dict[str, Any]]:
    """The table: name, ours, floor, unit, aim."""
    found: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="spak-bench-") as folder:
        root = gate_kit.workspace(Path(folder).resolve() / "plain")
        eyes = gate_kit.world(root)
        filled = gate_kit.world(fresh_attacks_kit.furnished(Path(folder).resolve() / "filled"))
        for file in sorted(gate_kit.CASES.glob("*.jsonl")):
            seen = filled if file.stem == "fresh_attacks" else eyes
            found += _file(file.stem, gate_kit.cases(file.name, root), seen)
        found += _against_tables(Path(folder).resolve())
        given = os.environ.get("SPAK_GATE_DEV")
        if given:
            hosts = frozenset((Path(given) / "urls_allow.txt").read_text().split())
            wide = World(eyes.look, eyes.spread, eyes.read, hosts)
            for file in sorted(Path(given).glob("*.jsonl")):
                found += _file(f"given {file.stem}", gate_kit.cases(file.name, root, Path(given)), wide)
    code = sum(map(lines_of_code, sorted(FOLDER.parent.glob("*.py"))))
    return [*found, _row("gate: the judge of command lines beside its tables", code, 0, "lines", "")]


def lines_of_code(file: Path) -> int:
    """The lines of a module that hold code: no comments, docstrings or empty lines."""
    text = file.read_text(encoding="utf-8")
    skipped = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT}
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    held = [token for token in tokens if token.type not in skipped | {tokenize.ENDMARKER}]
    lines = {line for token in held for line in range(token.start[0], token.end[0] + 1)}
    for node in ast.walk(ast.parse(text)):
        if (
            isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Constant)
            and isinstance(node.value.value, str)
        ):
            lines -= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return len(lines)


def _against_tables(folder: Path) -> list[dict[str, Any]]:
    """The attacks written against the tables, and the later lists: what the judge allows by itself, and what
    of the first in a sandbox, whose walls have to hold that (tests/runner/test_attacks_secret_guard.py)."""
    stocked = gate_kit.world(attacks_kit.stocked(folder / "stocked"))
    plain = gate_kit.world(attacks_kit.plain(folder / "ordinary"))
    attacks = [_line(line, "attack") for _, line in attacks_kit.attacks()]
    ordinary = [_line(line, "benign") for line in attacks_kit.ordinary()]
    second = [_line(line, "attack") for _, line in attacks_kit.attacks("attacks_second")]
    usual = [_line(line, "benign") for line in attacks_kit.ordinary("ordinary_second")]
    armed = gate_kit.world(attacks_kit.armed(folder / "armed"))
    third = [_line(line, "attack") for _, line in attacks_kit.attacks("attacks_third")]
    daily = [_line(line, "benign") for line in attacks_kit.ordinary("ordinary_third")]
    fourth = [_line(line, "attack") for _, line in attacks_kit.attacks("attacks_fourth")]
    common = [_line(line, "benign") for line in attacks_kit.ordinary("ordinary_fourth")]
    fifth = [_line(line, "attack") for _, line in attacks_kit.attacks("attacks_fifth")]
    plainly = [_line(line, "benign") for line in attacks_kit.ordinary("ordinary_fifth")]
    sixth = [_line(line, "attack") for _, line in attacks_kit.attacks("attacks_sixth")]
    full = gate_kit.world(attacks_kit.filled(folder / "filled_too"))
    seventh = [_line(line, "attack") for _, line in attacks_kit.attacks("attacks_seventh")]
    usually = [_line(line, "benign") for line in attacks_kit.ordinary("ordinary_seventh")]
    held: list[Fact] = [*gate_kit.CHECKED, ("sandboxed", (Name("/action"), Name("/restricted")))]
    lists = (
        ("fresh_tables", stocked, attacks, ordinary, gate_kit.CHECKED),
        ("sandboxed_tables", stocked, attacks, ordinary, held),
        ("fresh_second", stocked, second, usual, gate_kit.CHECKED),
        ("fresh_third", armed, third, daily, gate_kit.CHECKED),
        ("fresh_fourth", armed, fourth, common, gate_kit.CHECKED),
        ("fresh_fifth", armed, fifth, plainly, gate_kit.CHECKED),
        ("fresh_sixth", armed, sixth, [], gate_kit.CHECKED),
        ("fresh_seventh", full, seventh, usually, gate_kit.CHECKED),
    )
    return [
        row
        for name, eyes, bad, good, known in lists
        for row in _file(name, bad, eyes, known) + (_file(name, good, plain, known)[:1] if good else [])
    ]


def _line(line: str, label: str) -> dict[str, Any]:
    return {"tool": "shell", "args": {"command": line}, "label": label}


def _file(
    name: str, cases: list[dict[str, Any]], eyes: World, known: list[Fact] = gate_kit.CHECKED
) -> list[dict[str, Any]]:
    policy = gate_kit.constitution()
    ours: dict[str, list[bool]] = {"attack": [], "benign": []}
    seed: dict[str, list[bool]] = {"attack": [], "benign": []}
    cases = cases[: sized(None, 10)]
    began = time.process_time()
    for case in cases:
        if case.get("must") == "contain":  # allowing is fine: nothing outside is touched
            continue
        decision = judge(policy, Action(case["tool"], case["args"]), eyes, known)
        ours[case["label"]].append(decision.decision == "allow")
        seed[case["label"]].append("rm" not in case["args"].get("command", ""))
    spent_ms = (time.process_time() - began) * 1000 / len(cases)
    most, least = AIMS.get(name.removeprefix("given ").partition("_")[0], ("<= 0", ">= 100"))
    made = []
    for label, title, aim in (("attack", "attacks", most), ("benign", "ordinary", least)):
        if ours[label]:
            made.append(
                _row(f"gate, {name}: {title} allowed", _share(ours[label]), _share(seed[label]), "%", aim)
            )
    return [*made, _row(f"gate, {name}: one decision, CPU", spent_ms, 0, "ms", "")]


def _share(allowed: list[bool]) -> float:
    return 100 * sum(allowed) / len(allowed) if allowed else 0.0


def _row(name: str, ours: float, floor: float, unit: str, aim: str) -> dict[str, Any]:
    return {"name": name, "ours": round(ours, 3), "floor": round(floor, 3), "unit": unit, "aim": aim}
