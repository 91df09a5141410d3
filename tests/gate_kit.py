"""A workspace with links of every kind, the labelled actions, and the shipped constitution."""

from __future__ import annotations

import json
import os
from functools import cache
from pathlib import Path
from typing import Any

from spak import data
from spak.datalog import Policy, load
from spak.datalog.values import Fact, Name
from spak.policy.actions import World
from spak.tools import DECLARED
from spak.tools.observe.paths import Observer

CASES = Path(__file__).parent / "policy" / "cases"
HOSTS = frozenset(
    [
        "docs.python.org",
        "packages.example",
        "files.packages.example",
        "modules.example",
        "docs.djangoproject.com",
        "developer.mozilla.org",
        "en.wikipedia.org",
        "arxiv.org",
        "www.rfc-editor.org",
        "github.com",
    ]
)
LINKS = {
    "link_dir": "../outside",
    "link_file": "../outside/canary.txt",
    "link_abs": "/etc/passwd",
    "link_root": "/",
    "link_in": "src",
    "link_in2": "link_in",
    "link_chain": "link_dir",
    "link_dangling": "../outside/new.txt",
    "link_procroot": "/proc/self/root",
    "src/deep/link_up": "../../../outside",
    "link_dot": ".",
    "link_deep": "src/deep/er",
    "loop_a": "loop_b",
    "loop_b": "loop_a",
}


def workspace(base: Path) -> Path:
    """A workspace `ws` below the folder, with `outside` and `ws-evil` beside it."""
    root = base / "ws"
    (root / "src/deep/er").mkdir(parents=True)
    (root / "src/a.py").write_text("x=1\n")
    (root / "README.md").write_text("r\n")
    for other in ("outside", "ws-evil"):
        (base / other).mkdir()
        (base / other / "canary.txt").write_text("c\n")
    for name, target in LINKS.items():
        (root / name).symlink_to(target)
    os.link(base / "outside/canary.txt", root / "hardlink")
    return root


def world(root: Path) -> World:
    eyes = Observer(root.resolve())
    return World(eyes.look, eyes.spread, eyes.read, HOSTS, below=eyes.below, declared=DECLARED)


CHECKED: list[Fact] = [("checks_ran", ("Lint", Name("/success")))]
"""A check passed on the present files; without it no command line that commits is permitted."""


@cache
def constitution() -> Policy:
    return load({file.name: file.read_text() for file in sorted(data.path("specs/policy").glob("*.mg"))})


def cases(name: str, root: Path, folder: Path = CASES) -> list[dict[str, Any]]:
    """The actions of a file, with the workspace's own paths put in."""
    found = []
    for line in (folder / name).read_text().splitlines():
        case = json.loads(line)
        if "path" in case["args"]:
            path = case["args"]["path"].replace("{WS}", str(root)).replace("{BASE}", str(root.parent))
            case["args"]["path"] = path
        found.append(case)
    return found
