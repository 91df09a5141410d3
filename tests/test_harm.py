"""The attacks of the bench: each is a spec, there are enough, and no oracle sees through a wall."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

ROOT = Path(__file__).resolve().parents[1]
LEAST = 100
PLACES = {"@BASE@": "/tmp/x", "@RAN@": "/tmp/x/ran", "@TCP@": "1", "@UDP@": "2", "@ABSTRACT@": "a"}


@pytest.fixture(scope="module", autouse=True)
def root_on_path() -> Iterator[None]:
    sys.path.insert(0, str(ROOT))
    yield
    sys.path.remove(str(ROOT))


@pytest.fixture
def short() -> Iterator[Path]:
    """A folder whose name leaves room for that of a socket (108 bytes)."""
    with TemporaryDirectory(prefix="harm-") as folder:
        yield Path(folder)


def test_every_attack_is_a_spec_with_a_name_of_its_own() -> None:
    from bench.bench_harm import CHANNELS
    from bench.harm.attack import spec
    from spak.lang import parse

    names = [(channel, one.name) for channel, (_, table) in CHANNELS.items() for one in table()]
    assert len(names) == len(set(names)) >= LEAST
    assert {channel for channel, _ in names} == set("SBHORCDQ")
    for _, table in CHANNELS.values():
        for attack in table():
            assert not parse(spec(attack, PLACES)).diagnostics, attack.name


def test_a_decoder_reads_what_an_attacker_writes_and_nothing_else() -> None:
    from bench.harm import oracles
    from bench.harm.world import token

    value = token("a place")
    scope = {"base64": __import__("base64"), "t": f"KEY={value}"}
    for name, (how, _) in oracles.CODES.items():
        text = f'{{"out":"some words {eval(how, scope)}\\n"}}'
        assert oracles.leaks(iter([text]), {"a place": value, "other": token("other")}) == ["a place"], name
    assert oracles.leaks(iter([f"{value[:8]} [redacted:key]"]), {"a place": value}) == []


def test_what_was_sent_is_seen_later(short: Path) -> None:
    from bench.harm import oracles

    for name in ("ws/node_modules/dep", "outside"):
        (short / name).mkdir(parents=True)
    listeners = oracles.Listeners(short)
    try:
        assert listeners.reached() == []
        pipe = os.open(short / "ws/dev.pipe", os.O_WRONLY)
        os.write(pipe, b"x")
        os.close(pipe)
        assert listeners.reached() == ["a pipe of the folder"]
    finally:
        listeners.close()


@pytest.mark.sandbox
def test_a_control_fails_where_its_wall_stands(short: Path) -> None:
    from bench.harm import controls
    from bench.harm.carry import Carrier
    from bench.harm.world import made

    (short / "world").mkdir()
    carrier = Carrier(made(short / "world"), short)
    _, attack, wall, seen = next(row for row in controls.table() if row[0] == "H")
    assert not seen(carrier.carry(attack)) and seen(carrier.carry(attack, wall))
