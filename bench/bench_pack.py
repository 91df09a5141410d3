"""Packs: 1,000 changes of signed ones, found by ours and by tools of others; the verifier in JavaScript.

Packs are those of tests/pack_kit.py, of every golden run. A change is of a byte, of a line, or a cut, chosen
by a seed; one that changes nothing is not counted. The tools of others are those of tests/pack_outside.py,
which imports nothing of SPAK. Node runs verifier/verify-pack.mjs where it is installed. The cost is the CPU
of a run of the kernel tuner, with all its processes, beside that of `spak verify-pack` on what it left.
"""

from __future__ import annotations

import json
import os
import random
import resource
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from bench.sizes import sized
from spak.ledger.pack import Keys, verify_pack
from spak.policy import approval

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))
from pack_kit import GOLDEN, LOG, PUBLIC, packed, packs, tampered  # noqa: E402
from pack_outside import problem  # noqa: E402

TIMES = sized(1000, 20)
SPAK = str(Path(sys.executable).with_name("spak"))
KEY_ID = approval.key_id(PUBLIC)


def rows() -> list[dict[str, Any]]:
    """The figures: name, ours, floor, unit, aim."""
    whole = [packed(file) for file in GOLDEN]
    wrong = sum(bool(problem(data, PUBLIC, KEY_ID)) for data in whole)
    changed = list(_changed(whole))
    ours = sum(verify_pack(data.splitlines(True), Keys(PUBLIC), replayed=False).ok for data in changed)
    theirs = sum(not problem(data, PUBLIC, KEY_ID) for data in changed)
    run, check = _cost()
    return [
        _row(f"pack: changes of a signed pack, of {TIMES}, that verify-pack did not find", ours, "<= 0"),
        _row(f"pack: of the same {TIMES}, that tools of others did not find", theirs, "<= 0"),
        _row(f"pack: whole ones that tools of others refused, of {len(whole)}", wrong, "<= 0"),
        *_javascript(changed),
        _row("pack: CPU of verify-pack to that of the run, attention_tuner", check / run * 100, "<= 10", "%"),
    ]


def _changed(whole: list[bytes]) -> list[bytes]:
    """Packs with a change each, which is one."""
    found: list[bytes] = []
    seed = 0
    while len(found) < TIMES:
        data = whole[seed % len(whole)]
        other = tampered(data, random.Random(seed))
        seed += 1
        if other != data:
            found.append(other)
    return found


def _javascript(changed: list[bytes]) -> list[dict[str, Any]]:
    made = dict(packs())
    names = [
        f"pack: packs that the verifier in JavaScript did not read, of {len(made)}",
        f"pack: changes of {TIMES} that it did not find",
    ]
    if shutil.which("node") is None:
        return [_row(name, None, "<= 0") for name in names]
    keys = ["--key", PUBLIC]
    logged = {name: data for name, data in made.items() if name.endswith(("-both", "-part"))}
    refused = sum(not ok for ok in _node(made, []))
    refused += sum(not ok for ok in _node(logged, [*keys, "--log-key", str(LOG)]))
    missed = sum(_node({str(number): data for number, data in enumerate(changed)}, keys))
    return [_row(names[0], refused, "<= 0"), _row(names[1], missed, "<= 0")]


def _node(made: dict[str, bytes], options: list[str]) -> list[bool]:
    with tempfile.TemporaryDirectory(prefix="spak-bench-") as name:
        for file, data in made.items():
            (Path(name) / file).write_bytes(data)
        done = subprocess.run(
            ["node", ROOT / "verifier" / "verify-pack.mjs", *options, *made],
            cwd=name, capture_output=True, text=True, check=False,
        )  # fmt: skip
    found = [json.loads(line)["ok"] for line in done.stdout.splitlines()]
    assert len(found) == len(made), done.stderr
    return found


def _cost() -> tuple[float, float]:
    """Seconds of CPU of a run and of the check of its pack, each with the processes that it started."""
    with tempfile.TemporaryDirectory(prefix="spak-bench-") as name:
        spec = ROOT / "specs" / "examples" / "attention_tuner.spak"
        run = _cpu(name, "run", str(spec))
        subprocess.run([SPAK, "export", "--as", "pack", "-o", "run.jsonl"], cwd=name, check=True)
        return run, _cpu(name, "verify-pack", "run.jsonl")


def _cpu(folder: str, *args: str) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([SPAK, *args], cwd=folder, check=True, env=dict(os.environ), stdin=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _row(name: str, ours: float | None, aim: str, unit: str = "") -> dict[str, Any]:
    return {"name": name, "ours": ours, "floor": None, "unit": unit, "aim": aim}
