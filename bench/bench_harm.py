"""Attacks on the walls of a run that got something out of it, by channel (bench.harm).

S secrets, B bytes out, H the host, O what outlives a run, R rights of a later step, C checks, D files
destroyed, Q resources. Each attack is carried out as the user who starts this, by root as an ordinary user
too, in the launcher `restricted`, and in `docker` where an engine runs. The floor of a count is how many
attacks it is a part of; what did harm goes to standard error. Before that the controls take each wall away:
an oracle that then sees nothing fails the module.

    python -m bench.bench_harm [CHANNEL...] [--name TEXT] [--uid]     some, with what their runs said
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
from bench.harm.attack import Attack
from bench.harm.carry import USER, Carrier, Seen, ready, usable
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
AS_STARTED = "C"
"""Channels whose attacks need what this Python has, which an ordinary user may not read."""
MOST_GREEN = 5


def rows() -> list[dict[str, Any]]:
    """The table: name, ours, floor, unit, aim."""
    with _carrier() as carrier:
        blind = list(unseen(carrier))
        assert not blind, f"not seen where it happens: {'; '.join(blind)}"
        users = [carrier, *([Carrier(carrier.world, carrier.place, USER)] if usable() else [])]
        found = [_row(name, users) for name in CHANNELS]
        return [*found, _of_docker(carrier)]


def _row(name: str, users: list[Carrier]) -> dict[str, Any]:
    attacks = list(CHANNELS[name][1]())[: sized(None, 1)]
    users = users[:1] if name in AS_STARTED else users[sized(0, -1) :]  # controls are as started
    done = sum(
        _harmful(name, carrier.carry(attack), attack, carrier) for carrier in users for attack in attacks
    )
    whole = len(attacks) * len(users)
    if name != "C":
        return _figure(f"harm {name}: {CHANNELS[name][0]}", done, whole, "<= 0")
    share = round(100 * done / whole, 1)
    row = _figure("harm C: wrong programs that end green", done, whole)
    return {**row, "ours": share, "unit": "%", "aim": f"<= {MOST_GREEN}"}


def _of_docker(carrier: Carrier) -> dict[str, Any]:
    """All channels but C in a container; None where no engine runs, and in the quick form."""
    if sized(False, True):
        return _figure("harm in docker", None, None, "<= 0")
    try:
        fault = LAUNCHERS["docker"]().probe()  # type: ignore[attr-defined]
    except UnavailableError as error:
        fault = error.message
    if fault:
        print(f"harm: not tried in docker: {fault.splitlines()[0]}", file=sys.stderr)
        return _figure("harm in docker", None, None, "<= 0")
    inside, done, whole = Carrier(carrier.world, carrier.place, launcher="docker"), 0, 0
    for name in CHANNELS:
        for attack in list(CHANNELS[name][1]())[: sized(None, 1)] if name not in AS_STARTED else ():
            whole += 1
            done += _harmful(name, inside.carry(attack), attack, inside)
    return _figure("harm in docker", done, whole, "<= 0")


def _harmful(name: str, seen: Seen, attack: Attack | None = None, carrier: Carrier | None = None) -> bool:
    """Whether it did harm; then it is named."""
    harm = {**seen.harm, **({"green": ["yes"]} if name == "C" and seen.green else {})}
    if harm and attack is not None and carrier is not None:
        who = "" if carrier.uid is None else " (ordinary user)"
        what = "; ".join(f"{kind}: {', '.join(found[:4])}" for kind, found in harm.items())
        print(f"harm {name}{who}: {attack.name}: {what}", file=sys.stderr)
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
        world = made(place / "world")
        ready(world)
        yield Carrier(world, place)


def main() -> int:
    """Carry some attacks out and show what their runs said."""
    arguments = argparse.ArgumentParser(prog="python -m bench.bench_harm")
    arguments.add_argument("channels", nargs="*", metavar="CHANNEL")
    arguments.add_argument("--name", default="", help="a part of the attack's name")
    arguments.add_argument("--uid", action="store_true", help="as an ordinary user")
    arguments.add_argument("--controls", action="store_true", help="the controls alone")
    given = arguments.parse_args()
    with _carrier() as carrier:
        if given.controls:
            print("\n".join(unseen(carrier)) or "all seen")
            return 0
        if given.uid:
            carrier = Carrier(carrier.world, carrier.place, USER)
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
