"""A small seeded set of made-up runs, so that the bench says something without anybody's recordings.

`desk` answers customers out of JSON records; `code` opens, edits and runs files. Every literal that a later
call needs was shown by an earlier result. The texts are drawn from a seed: the same set on every machine.
"""

from __future__ import annotations

import json
import random

from bench.tokens.trajectories import Call, Message, Trajectory

WORDS = ("order", "item", "parcel", "refund", "label", "route", "window", "shelf", "driver", "pallet")


def runs(seed: int = 11, count: int = 12) -> dict[str, list[Trajectory]]:
    """Both kinds, `count` runs each."""
    return {
        "synthetic desk": [desk(random.Random(f"{seed}/desk/{i}"), 4 + i % 5) for i in range(count)],
        "synthetic code": [code(random.Random(f"{seed}/code/{i}"), 5 + i % 6) for i in range(count)],
    }


def desk(draw: random.Random, requests: int, name: str = "desk") -> Trajectory:
    """Requests of a person, each with three calls and an answer."""
    found = [Message("system", "You are a desk of a warehouse. " + _prose(draw, 300))]
    for _ in range(requests):
        user, order = f"u_{draw.randrange(10**5, 10**6)}", f"ORD{draw.randrange(10**4, 10**5)}"
        items = [
            {"sku": f"S{draw.randrange(10**6)}", "name": draw.choice(WORDS), "price": draw.randrange(5, 900)}
            for _ in range(draw.randrange(4, 16))
        ]
        found.append(Message("user", f"I am {user}. " + _prose(draw, 25)))
        found += _call("get_user", {"user": user}, {"user": user, "orders": [order], "city": "Ulm"})
        record = {"order": order, "status": "sent", "items": items, "note": _prose(draw, 40)}
        found += _call("get_order", {"order": order}, record)
        chosen = draw.choice(items)["sku"]
        found += _call("return_item", {"order": order, "sku": chosen}, {"done": True, "order": order})
        said = _prose(draw, 60)
        found.append(Message("assistant", said, said))
    return Trajectory(name, tuple(found))


def code(draw: random.Random, rounds: int, name: str = "code") -> Trajectory:
    """Rounds of search, open, edit and run."""
    found = [
        Message("system", "You mend programs. " + _prose(draw, 250)),
        Message("user", "The build fails. " + _prose(draw, 120)),
    ]
    for _ in range(rounds):
        path = f"src/{draw.choice(WORDS)}/{draw.choice(WORDS)}_{draw.randrange(100)}.py"
        others = [f"src/{draw.choice(WORDS)}_{draw.randrange(1000)}.py" for _ in range(8)]
        found += _call("find_file", {"name": "x"}, "\n".join([*others, path]))
        lines = [f"{i}: {draw.choice(WORDS)}_{i} = {_prose(draw, 6)}" for i in range(1, 60)]
        found += _call("open", {"path": path}, "\n".join(lines))
        found += _call("edit", {"path": path, "line": draw.randrange(1, 60), "text": _prose(draw, 12)}, "ok")
        found += _call("run", {"cmd": "pytest -q"}, _prose(draw, 80))
    return Trajectory(name, tuple(found))


def _call(name: str, args: dict[str, object], result: object) -> list[Message]:
    text = result if isinstance(result, str) else json.dumps(result)
    written = json.dumps(args)
    return [Message("assistant", name + written, "", (Call(name, written),)), Message("tool", text)]


def _prose(draw: random.Random, words: int) -> str:
    return " ".join(draw.choice(WORDS) for _ in range(words))
