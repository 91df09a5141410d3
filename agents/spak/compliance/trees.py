"""Folders at random, and scripts that change them: one whose work is kept, one that dies in the middle.

Takes a generator of random numbers; the same one gives the same folder and scripts.
"""

from __future__ import annotations

import os
import random
from pathlib import Path

WORDS = ("one", "two", "three", "a b", "é", "deep", "x.y", "-dash")


def plant(top: Path, draw: random.Random) -> None:
    """Fill a folder: files of several rights, folders, empty ones among them, and links."""
    folders = [top]
    for number in range(draw.randint(3, 6)):
        folder = draw.choice(folders) / f"{draw.choice(WORDS)}{number}"
        folder.mkdir()
        folders.append(folder)
    for number in range(draw.randint(6, 14)):
        file = draw.choice(folders) / f"{draw.choice(WORDS)}-{number}"
        file.write_bytes(draw.randbytes(draw.choice((0, 7, 5_000))))
        file.chmod(draw.choice((0o644, 0o755)))
    (draw.choice(folders) / "link").symlink_to(draw.choice(("one", "../gone", ".")))


def wreck(top: Path, draw: random.Random) -> tuple[str, str]:
    """Two scripts for such a folder: what is kept, and what dies."""
    paths = sorted(str(path.relative_to(top)) for path in top.rglob("*"))
    files = [path for path in paths if (top / path).is_file() and not (top / path).is_symlink()]
    kept = draw.sample(files, 2)
    keep = [
        "mkdir -p kept/empty kept/full",
        "echo kept > kept/full/file; chmod 755 kept/full/file; ln -s full/file kept/link",
        f"echo more >> {_word(kept[0])}",
        f"rm -f {_word(kept[1])}",
    ]
    gone = [f"rm -rf {_word(path)}" for path in draw.sample(paths, 2)]
    wrong = [f"echo wrong > {_word(path)}" for path in draw.sample(files, 2)]
    more = [
        "mkdir -p new/deep",
        "echo new > new/deep/file",
        "rm -rf kept/empty kept/link",
        "chmod 711 kept/full/file",
    ]
    moves = [*gone, *wrong, *more]
    draw.shuffle(moves)
    return "; ".join(keep), "; ".join([f"({move}) 2>/dev/null" for move in moves] + ["kill -9 $$"])


def _word(path: str) -> str:
    return "'./" + os.fspath(path).replace("'", "'\\''") + "'"
