"""Measures one setting of zlib on log lines that the setting was not chosen on.

Reads one JSON line {"nonce", "seed", "candidate"}; the candidate is a file of `#define NAME NUMBER` lines. Prints
{"nonce", "metrics": {"ratio", "slowdown"}}: original over compressed size, and least time over that of zlib's default
setting, taken in turn with it. A setting that does not give the text back ends with exit 1.
"""

import json
import random
import re
import sys
import time
import zlib

LINES = 1500
ROUNDS = 9


def text(seed: int) -> bytes:
    """Log lines of a few services, the same for the same seed."""
    draw = random.Random(seed)
    users = [f"user-{draw.getrandbits(32):08x}" for _ in range(300)]
    routes = [
        f"/api/v{draw.randint(1, 3)}/{name}" for name in ("orders", "carts", "items", "login", "search")
    ]
    lines = []
    for number in range(LINES):
        lines.append(
            f"2026-01-01T00:{number // 60 % 60:02d}:{number % 60:02d}Z {draw.choice(('INFO', 'INFO', 'WARN'))} "
            f"{draw.choice(routes)} {draw.choice(users)} status={draw.choice((200, 200, 200, 404, 500))} "
            f"ms={draw.randint(1, 900)}"
        )
    return "\n".join(lines).encode()


def compress(data: bytes, setting: dict[str, int]) -> tuple[bytes, float]:
    began = time.perf_counter()
    made = zlib.compressobj(
        setting["LEVEL"], zlib.DEFLATED, setting["WINDOW"], setting["MEMORY"], setting["STRATEGY"]
    )
    packed = made.compress(data) + made.flush()
    return packed, time.perf_counter() - began


def main() -> None:
    given = json.loads(sys.stdin.readline())
    with open(given["candidate"], encoding="utf-8") as file:
        setting = {
            name: int(value) for name, value in re.findall(r"^#define (\w+) (\d+)$", file.read(), re.M)
        }
    data = text(given["seed"])
    default = {"LEVEL": 6, "WINDOW": 15, "MEMORY": 8, "STRATEGY": 0}
    mine, usual = [], []
    for _ in range(ROUNDS):
        packed, seconds = compress(data, setting)
        mine.append(seconds)
        usual.append(compress(data, default)[1])
    if zlib.decompress(packed) != data:
        sys.exit("the setting does not give the text back")
    metrics = {"ratio": len(data) / len(packed), "slowdown": min(mine) / min(usual)}
    print(json.dumps({"nonce": given["nonce"], "metrics": metrics}))


if __name__ == "__main__":
    main()
