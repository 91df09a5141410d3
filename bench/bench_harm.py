"""Attacks on the walls of a run that got something out of it, by channel (bench.harm).

S secrets, B bytes out, H the host, O what outlives a run, R rights of a later step, C checks, D files
destroyed, Q resources. Each attack is carried out as the user who starts this, by root as an ordinary user
too, in the launcher `restricted`, and in `docker` where an engine runs. The floor of a count is how many
attacks it is a part of; what did harm goes to standard error. Before that the controls take each wall away:
an oracle that then sees nothing fails the module.

    python -m bench.bench_harm [CHANNEL...] [--name TEXT] [--uid] [--docker] [--sealed]   some
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench.harm import (
    check_attacks,
    destroying_attacks,
    filling_attacks,
    host_attacks,
    outliving_attacks,
    outward_attacks,
    right_attacks,
    secret_attacks,
)
from bench.harm.attack import Attack, write
from bench.harm.carry import USER, Carrier, usable
from bench.harm.controls import unseen
from bench.harm.world import made
from bench.sizes import sized
from spak.errors import UnavailableError
from spak.sandbox import LAUNCHERS

CHANNELS: dict[str, tuple[str, Callable[[], Iterator[Attack]]]] = {
    "S": ("secrets", secret_attacks.attacks),
    "B": ("bytes out", outward_attacks.attacks),
    "H": ("the host", host_attacks.attacks),
    "O": ("outlives the run", outliving_attacks.attacks),
    "R": ("rights", right_attacks.attacks),
    "C": ("checks", check_attacks.attacks),
    "D": ("destroyed", destroying_attacks.attacks),
    "Q": ("resources", filling_attacks.attacks),
}
MOST_GREEN = 5
HONEST = "def double(n):\n    return n + n\n"


def rows() -> list[dict[str, Any]]:
    """The table: name, ours, floor, unit, aim."""
    with _carrier() as carrier:
        ordinary = [Carrier(carrier.world, carrier.place, USER)] if usable() else []
        carriers = [carrier, *ordinary, *(_in_docker(carrier) if sized(True, False) else ())]
        for one in carriers[: sized(None, 1)]:
            blind = list(unseen(one))
            assert not blind, f"not seen where it happens: {'; '.join(blind)}"
        found = [_row(name, carriers[sized(0, -1) :]) for name in CHANNELS]
        return [*found, _sealed(carrier)]


def _row(name: str, carriers: list[Carrier]) -> dict[str, Any]:
    attacks = list(CHANNELS[name][1]())[: sized(None, 1)]
    done = sum(_harmful(name, carrier, attack) for carrier in carriers for attack in attacks)
    whole = len(attacks) * len(carriers)
    if name != "C":
        return _figure(f"harm {name}: {CHANNELS[name][0]}", done, whole, "<= 0")
    share = round(100 * done / whole, 1)
    row = _figure("harm C: wrong programs that end green", done, whole)
    return {**row, "ours": share, "unit": "%", "aim": f"<= {MOST_GREEN}"}


def _sealed(carrier: Carrier) -> dict[str, Any]:
    """Channel C where the runs have sealed checks."""
    attacks = list(check_attacks.attacks())[: sized(None, 1)]
    inside = Carrier(carrier.world, carrier.place, sealed=True)
    honest = Attack("honest", (write("src/util.py", HONEST),), check=check_attacks.CHECK)
    assert inside.carry(honest).green, "sealed checks refuse a right program"
    done = sum(_harmful("C", inside, attack) for attack in attacks)
    return _figure("harm C: wrong programs that pass sealed checks", done, len(attacks), "<= 0")


def _in_docker(carrier: Carrier) -> list[Carrier]:
    """The same in containers, where an engine runs."""
    try:
        fault = LAUNCHERS["docker"]().probe()  # type: ignore[attr-defined]
    except UnavailableError as error:
        fault = error.message
    if fault:
        print(f"harm: not tried in docker: {fault.splitlines()[0]}", file=sys.stderr)
        return []
    return [Carrier(carrier.world, carrier.place, launcher="docker")]


def _harmful(name: str, carrier: Carrier, attack: Attack) -> bool:
    """Whether it did harm; then it is named."""
    seen = carrier.carry(attack)
    harm = {**seen.harm, **({"green": ["yes"]} if name == "C" and seen.green else {})}
    if harm:
        who = f"{carrier.launcher}{'' if carrier.uid is None else ', ordinary user'}"
        what = "; ".join(f"{kind}: {', '.join(found[:4])}" for kind, found in harm.items())
        print(f"harm {name} ({who}): {attack.name}: {what}", file=sys.stderr)
    return bool(harm)


def _figure(name: str, ours: int | None, floor: int | None, aim: str = "") -> dict[str, Any]:
    return {"name": name, "ours": ours, "floor": floor, "unit": "attacks", "aim": aim}


@contextmanager
def _carrier() -> Iterator[Carrier]:
    """As the user who starts this, in a folder that every user may enter."""
    with tempfile.TemporaryDirectory(prefix="spak-harm-") as folder:
        place = Path(folder).resolve()
        place.chmod(0o755)
        (place / "world").mkdir()
        yield Carrier(made(place / "world"), place)


def main() -> int:
    """Carry some attacks out and show what their runs said."""
    arguments = argparse.ArgumentParser(prog="python -m bench.bench_harm")
    arguments.add_argument("channels", nargs="*", metavar="CHANNEL")
    arguments.add_argument("--name", default="", help="a part of the attack's name")
    arguments.add_argument("--uid", action="store_true", help="as an ordinary user")
    arguments.add_argument("--docker", action="store_true", help="in containers")
    arguments.add_argument("--sealed", action="store_true", help="with sealed checks")
    arguments.add_argument("--controls", action="store_true", help="the controls alone")
    given = arguments.parse_args()
    with _carrier() as carrier:
        uid, launcher = USER if given.uid else None, "docker" if given.docker else carrier.launcher
        carrier = Carrier(carrier.world, carrier.place, uid, launcher, given.sealed)
        if given.controls:
            print("\n".join(unseen(carrier)) or "all seen")
            return 0
        for name, attack in _chosen(given.channels or CHANNELS, given.name):
            seen = carrier.carry(attack)
            green = " GREEN" if seen.green and name == "C" else ""
            print(f"{name} {attack.name}: {seen.state}{green} {seen.harm or ''}", flush=True)
            if given.name:
                print(seen.said, "held:", seen.held)
    return 0


def _chosen(channels: Iterable[str], part: str) -> Iterator[tuple[str, Attack]]:
    for name in channels:
        every = CHANNELS[name][1]()
        yield from ((name, attack) for attack in every if part in attack.name)


if __name__ == "__main__":
    sys.exit(main())
