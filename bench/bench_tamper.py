"""A guarded session replays equal with agent and model absent, and changes of its records are found.

An agent of ours works once behind `spak guard`: changes that are kept, one that the law takes back, calls of
our tools, long and short answers of its model. Then agent and model are gone, and the run's folder is copied
and tampered with, each time in one of KINDS, chosen by a seed. `spak ledger verify` and `spak replay` are
asked, by their commands, and `spak ledger verify --all` with a signed checkpoint that is kept elsewhere. The
folder has two more runs, and a log of which an earlier checkpoint was signed too. STORE are kinds that change
the folder as a whole; only the checkpoint is asked about those.

Kinds whose name ends with *chained again* are those of a person who may write the whole file and computes all
hashes anew. Without a checkpoint only what changes a decision is found of them: a figure of its own says how
many. A copy in which nothing is changed is asked too: a check that finds something there finds nothing.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from bench.sizes import sized
from spak import canon
from spak.cli import keys, spak
from spak.cli.common import guarded
from spak.ledger.note import own_verifier
from spak.ledger.places import LATEST
from spak.records import Record, decode, place

ROOT = Path(__file__).resolve().parents[1]
TIMES, HONEST = sized(1000, 36), sized(20, 2)
LAW = 'forbidden(A) :- changed(A, "kept.txt", _).\n'
TOOL = "python3 mcp_client.py {} '{}'"
STEPS = (
    "echo one > work.txt; seq 2000",
    "rm kept.txt; echo lost",
    TOOL.format("write_file", '{"path": "work.txt", "content": "two\\n"}'),
    TOOL.format("run", '{"cmd": ["sh", "-c", "echo 3 >> work.txt; seq 3000"]}'),
    TOOL.format("http_request", '{"url": "https://example.org/"}'),
    "true " + "# a long answer of the model " * 200,
    "mkdir -p deep/er; ln -s ../work.txt deep/link; chmod +x work.txt",
)
Lines = list[bytes]
Tamper = Callable[[random.Random, Lines, Path], Lines]


def rows() -> list[dict[str, Any]]:
    """The figures: name, ours, floor, unit, aim."""
    with tempfile.TemporaryDirectory(prefix="spak-bench-") as name:
        recorded = _recorded(Path(name) / "shop")
        files = {
            path.relative_to(recorded): path.read_bytes()
            for path in (recorded / "trace.jsonl", *(recorded / "blobs").rglob("*"))
            if path.is_file()
        }
        asked = Asked(Path(name) / "runs", recorded.name, files)
        wrong = sum(bool(asked(lambda rnd, lines, blobs: lines, seed)) for seed in range(HONEST))
        by_kind: Counter[str] = Counter()
        unanchored, unsigned, missed, failed = 0, 0, 0, 0
        for seed in range(TIMES):
            kind = list(KINDS)[seed % len(KINDS)]
            found = asked(KINDS[kind], seed)
            unanchored += bool(found - {"checkpoint"})
            unsigned += "checkpoint" not in found
            failed += "failed" in found
            if not found - {"failed"}:
                missed += 1
                print(f"not found: {kind}, seed {seed}", file=sys.stderr)
            elif not found - {"checkpoint"}:
                by_kind[kind] += 1
    for kind, count in sorted(by_kind.items()):
        print(f"found by the checkpoint only: {count} of {kind}", file=sys.stderr)
    return [
        _row(f"tamper: records of a guarded session, {TIMES} changes that nothing found", missed, "<= 0"),
        _row("tamper: of them that the signed checkpoint did not find, too", unsigned, "<= 0"),
        _row("tamper: of them found without a checkpoint", unanchored, ""),
        _row("tamper: of them that ended a command otherwise than by an error of the ledger", failed, "<= 0"),
        _row(f"tamper: copies without a change that were not whole and equal, of {HONEST}", wrong, "<= 0"),
    ]


class Asked:
    """What the commands say of a folder of records; the agent and its model are gone."""

    def __init__(self, runs: Path, run: str, files: dict[Path, bytes]) -> None:
        self.runs, self.run = runs, run
        self.lines = files[Path("trace.jsonl")].splitlines(keepends=True)
        self.place = runs.parent / "evidence"
        os.environ["XDG_CONFIG_HOME"] = str(runs.parent / "config")
        _must("keys", "make", "operator")
        for name in ("other", "another"):
            _write(runs / name, _named(name, self.lines[:9]), files)
        _write(runs / run, self.lines[: len(self.lines) // 2], files)
        self.key = _signed(runs, self.place)
        self.old = _read(runs)
        _write(runs / run, self.lines, files)
        _signed(runs, self.place)
        self.whole = _read(runs)

    def __call__(self, tamper: Tamper, seed: int) -> set[str]:
        """Which of `verify`, `replay` and `checkpoint` found something; `failed` for any other error."""
        shutil.rmtree(self.runs)
        for path, data in self.whole.items():
            (self.runs / path).parent.mkdir(parents=True, exist_ok=True)
            (self.runs / path).write_bytes(data)
        rnd, folder = random.Random(seed), self.runs / self.run
        ways = {"checkpoint": ("ledger", "verify", "--all", "--checkpoint", str(self.place / LATEST))}
        if tamper in STORE.values():
            tamper(rnd, self.old, self.runs)
        else:
            lines = tamper(rnd, list(self.lines), folder / "blobs")
            (folder / "trace.jsonl").write_bytes(b"".join(lines))
            ways |= {"verify": ("ledger", "verify", self.run), "replay": ("replay", self.run)}
        key = ("--key", self.key)
        codes = {
            way: _spak(*line, *(key if way == "checkpoint" else ()), "--runs-dir", str(self.runs))
            for way, line in ways.items()
        }
        odd = any(code not in (0, 1) for code in codes.values())
        return {way for way, code in codes.items() if code == 1} | ({"failed"} if odd else set())


def _write(folder: Path, lines: Lines, files: dict[Path, bytes]) -> None:
    for path, data in {**files, Path("trace.jsonl"): b"".join(lines)}.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(data)


def _named(run: str, lines: Lines) -> Lines:
    """The same records as those of another run."""
    records = [decode(line) for line in lines]
    return _again(records, 0, {"host": {**records[0].body["host"], "run": run}})


def _read(runs: Path) -> dict[Path, bytes]:
    return {path.relative_to(runs): path.read_bytes() for path in runs.rglob("*") if path.is_file()}


def _signed(runs: Path, place: Path) -> str:
    """A checkpoint of the folder in that place; gives the key that verifies it."""
    words = ("--log", "example.com/bench", "--sign-with", "operator", "--to", str(place))
    _must("ledger", "checkpoint", *words, "--runs-dir", str(runs))
    private = keys.load("operator").private
    return str(own_verifier("example.com/bench", private))


def _must(*args: str) -> None:
    if _spak(*args):
        raise RuntimeError(f"spak {' '.join(args)} failed")


def _spak(*args: str) -> int:
    """The exit code of a command, in this process."""
    before, sys.argv = sys.argv, ["spak", *args]
    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            return guarded(spak)
    finally:
        sys.argv = before


# ---- what somebody does to the records -----------------------------------------------------------------


def _byte(rnd: random.Random, lines: Lines, blobs: Path) -> Lines:
    data = bytearray(b"".join(lines))
    data[rnd.randrange(len(data))] ^= 1 << rnd.randrange(8)
    return [bytes(data)]


def _dropped(rnd: random.Random, lines: Lines, blobs: Path) -> Lines:
    del lines[rnd.randrange(len(lines))]
    return lines


def _swapped(rnd: random.Random, lines: Lines, blobs: Path) -> Lines:
    one, other = rnd.sample(range(len(lines)), 2)
    lines[one], lines[other] = lines[other], lines[one]
    return lines


def _doubled(rnd: random.Random, lines: Lines, blobs: Path) -> Lines:
    at = rnd.randrange(len(lines))
    return [*lines[: at + 1], *lines[at:]]


def _cut(rnd: random.Random, lines: Lines, blobs: Path) -> Lines:
    return lines[: rnd.randrange(1, len(lines))]


def _blob(rnd: random.Random, lines: Lines, blobs: Path) -> Lines:
    """A changed byte of a blob, another one in its place, or none."""
    path, other = rnd.sample(sorted(path for path in blobs.rglob("*") if path.is_file()), 2)
    data = bytearray(path.read_bytes())
    match rnd.randrange(3):
        case 0:
            data[rnd.randrange(len(data))] ^= 1 << rnd.randrange(8)
            path.write_bytes(data)
        case 1:
            path.write_bytes(other.read_bytes())
        case _:
            path.unlink()
    return lines


def _in_place(rnd: random.Random, lines: Lines, blobs: Path) -> Lines:
    """Another text of the same length in a body, without the hashes."""
    at = rnd.randrange(len(lines))
    words = [word for word in lines[at].split(b'"') if len(word) > 2 and word.isalnum()]
    word = rnd.choice(words)
    lines[at] = lines[at].replace(b'"%s"' % word, b'"%s"' % (b"x" * len(word)))
    return lines


def _answer(rnd: random.Random, lines: Lines, blobs: Path) -> Lines:
    """Another answer of the model, or those of two requests in each other's place."""
    records = [decode(line) for line in lines]
    asked = [at for at, one in enumerate(records) if one.body.get("name") == "model_request"]
    one, other = rnd.sample([at + 1 for at in asked if records[at + 1].kind == "act"], 2)
    outs = [records[at].body["out"] for at in (one, other)]
    if rnd.randrange(2) or outs[0] == outs[1]:
        return _again(records, one, {"out": f"another answer {rnd.random()}"})
    records[one] = records[one]._replace(body={**records[one].body, "out": outs[1]})
    return _again(records, other, {"out": outs[0]})


def _verdict(rnd: random.Random, lines: Lines, blobs: Path) -> Lines:
    records = [decode(line) for line in lines]
    at = rnd.choice([at for at, record in enumerate(records) if record.kind == "permit"])
    return _again(records, at, {"allow": not records[at].body["allow"]})


def _outcome(rnd: random.Random, lines: Lines, blobs: Path) -> Lines:
    """How a call ended, or what the files were afterwards."""
    records = [decode(line) for line in lines]
    acts = [at for at, one in enumerate(records) if one.kind == "act" and {"r3", "exit"} & one.body.keys()]
    at = rnd.choice(acts)
    if "r3" in records[at].body and rnd.randrange(2):
        return _again(records, at, {"r3": canon.digest(str(rnd.random()).encode())})
    return _again(records, at, {"exit": 1 - min(records[at].body.get("exit", 0), 1)})


def _call(rnd: random.Random, lines: Lines, blobs: Path) -> Lines:
    """Another call than the agent proposed."""
    records = [decode(line) for line in lines]
    at = rnd.choice([at for at, one in enumerate(records) if one.body.get("candidates")])
    call = records[at].body["candidates"][0]
    name = rnd.choice(sorted(call["args"]))
    changed = {**call, "args": {**call["args"], name: f"{rnd.random()}"}}
    return _again(records, at, {"candidates": [changed]})


def _decided(rnd: random.Random, lines: Lines, blobs: Path) -> Lines:
    """A decision of the kernel left out."""
    records = [decode(line) for line in lines]
    at = rnd.choice([at for at, one in enumerate(records) if at and one.authority == "commit"])
    del records[at]
    return _again(records, 0, {})


def _clock(rnd: random.Random, lines: Lines, blobs: Path) -> Lines:
    records = [decode(line) for line in lines]
    at = rnd.choice([at for at, one in enumerate(records) if one.at])
    records[at] = records[at]._replace(at=records[at].at - rnd.randrange(1, 1 << 40))
    return _again(records, at, {})


def _law(rnd: random.Random, lines: Lines, blobs: Path) -> Lines:
    """Another law than the session began under."""
    records = [decode(line) for line in lines]
    text = json.dumps(records[0].body["rules"])
    other = rnd.choice(("work.txt", "other.txt", f"{rnd.random()}.txt"))
    return _again(records, 0, {"rules": json.loads(text.replace("kept.txt", other))})


def _inserted(rnd: random.Random, lines: Lines, blobs: Path) -> Lines:
    """A record that was never written."""
    records = [decode(line) for line in lines]
    at = rnd.randrange(1, len(records))
    records.insert(at, records[at]._replace(at=records[at].at + 1))
    return _again(records, 0, {})


def _removed(rnd: random.Random, old: dict[Path, bytes], runs: Path) -> None:
    """A whole run, and perhaps the log with it."""
    names = sorted(path.name for path in runs.iterdir() if path.name[0] != ".")
    shutil.rmtree(runs / rnd.choice(names))
    if rnd.randrange(2):
        shutil.rmtree(runs / ".log")
        _relogged(runs)


def _restored(rnd: random.Random, old: dict[Path, bytes], runs: Path) -> None:
    """The copy of an earlier time, as it was or with a log that goes on from there."""
    shutil.rmtree(runs)
    for path, data in old.items():
        (runs / path).parent.mkdir(parents=True, exist_ok=True)
        (runs / path).write_bytes(data)
    if rnd.randrange(2):
        shutil.copytree(runs / "other", runs / "later")
        lines = (runs / "other/trace.jsonl").read_bytes().splitlines(keepends=True)
        _write(runs / "later", _named("later", lines), {})
        _relogged(runs)


def _rewritten(rnd: random.Random, old: dict[Path, bytes], runs: Path) -> None:
    """A run chained again, and the whole log made anew from what is there."""
    trace = runs / rnd.choice(("other", "another")) / "trace.jsonl"
    trace.write_bytes(b"".join(_clock(rnd, trace.read_bytes().splitlines(keepends=True), runs)))
    shutil.rmtree(runs / ".log")
    _relogged(runs)


def _relogged(runs: Path) -> None:
    """Another log of the same name and key, signed into another place: a second history."""
    with TemporaryDirectory(prefix="spak-bench-") as place:
        _signed(runs, Path(place))


def _again(records: list[Record], at: int, members: dict[str, Any]) -> Lines:
    """The whole chain with other members in one body, all hashes computed anew."""
    records[at] = records[at]._replace(body={**records[at].body, **members})
    head, made = canon.ZERO, []
    for seq, record in enumerate(records):
        placed, line = place(record, seq, head)
        head = placed.hash
        made.append(line)
    return made


KINDS: dict[str, Tamper] = {
    "a changed bit": _byte,
    "a record dropped": _dropped,
    "two records swapped": _swapped,
    "a record doubled": _doubled,
    "the end cut": _cut,
    "a blob changed, swapped or removed": _blob,
    "a text changed in its place": _in_place,
    "a model's answer changed or swapped, chained again": _answer,
    "a verdict turned, chained again": _verdict,
    "the end of a call changed, chained again": _outcome,
    "a proposed call changed, chained again": _call,
    "a decision dropped, chained again": _decided,
    "a time changed, chained again": _clock,
    "the law changed, chained again": _law,
    "a record inserted, chained again": _inserted,
}
STORE: dict[str, Any] = {
    "a run removed": _removed,
    "an old copy of the folder restored": _restored,
    "a run and the whole log written anew": _rewritten,
}
KINDS |= STORE


# ---- the session ---------------------------------------------------------------------------------------


def _recorded(shop: Path) -> Path:
    """The folder of a run; its agent and the model are not there any more."""
    shop.mkdir()
    for name in ("scripted_agent.py", "mcp_client.py"):
        (shop / name).write_text((ROOT / "tests" / name).read_text())
    for name, text in (("kept.txt", "k\n"), ("law.mg", LAW), ("spak.toml", '[policy]\nlaw = ["law.mg"]\n')):
        (shop / name).write_text(text)
    sys.path.insert(0, str(ROOT / "tests"))
    with importlib.import_module("guard_kit").Model(STEPS).serving() as model:
        program = str(Path(sys.executable).with_name("spak"))
        line = [program, "guard", "--json", "--wait", "0", "--", sys.executable, "scripted_agent.py", "work"]
        done = subprocess.run(line, cwd=shop, env={**os.environ, **model.env}, capture_output=True, text=True)
    said = [str(one["messages"][-1]["content"]) for one in model.asked]
    if done.returncode or not any("were taken back" in text for text in said):
        raise RuntimeError(f"the session was not as it should be: {done.stderr[-2000:]}")
    (shop / "scripted_agent.py").unlink()
    return shop / ".spak/runs" / str(json.loads(done.stdout)["run"])


def _row(name: str, ours: float, aim: str) -> dict[str, Any]:
    return {"name": name, "ours": ours, "floor": None, "unit": "", "aim": aim}
