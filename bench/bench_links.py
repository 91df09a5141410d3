"""Call edges of four packages beside those of jedi: how many of ours it confirms, how many of its we find.

Only when named (`make bench ARGS=links`): the first time it installs the packages of requirements-links.lock,
with their hashes, into `.venv-links`. An edge is a caller and a callee, both functions or classes of the
package; a constructor counts as its class, and a call of itself is left out on both sides. jedi is not always
right: on attrs most of what it does not confirm are calls of classes that it does not see.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from bench.bench_peers import installed
from bench.sizes import sized
from spak.world.index import update
from spak.world.store import Store

ROOT = Path(__file__).resolve().parents[1]
LOCK, PLACE = ROOT / "requirements-links.lock", ROOT / ".venv-links"
AIMS = {"attr": (0.95, 0.70), "click": (0.98, 0.80), "httpx": (0.98, 0.80), "typer": (0.98, 0.80)}
"""Precision and recall of each package."""
MOST = str(sized(0, 40))
"""Calls of a package that jedi is asked about; 0 is all."""
Edge = tuple[str, str, str, str]


def rows() -> list[dict[str, Any]]:
    """The figures: name, ours, floor, unit, aim."""
    python, found = installed(PLACE, LOCK), []
    for package, aims in list(AIMS.items())[: sized(None, 1)]:
        folder = next(PLACE.glob("lib/python*/site-packages")) / package
        ours, theirs = linked(folder), seen(python, folder)
        both = len(ours & theirs)
        for name, share, aim in (
            ("precision", both / len(ours), aims[0]),
            ("recall", both / len(theirs), aims[1]),
        ):
            found.append(
                {
                    "name": f"links of {package}: {name}, {len(ours)} edges, jedi {len(theirs)}",
                    "ours": round(share, 3), "floor": None, "unit": "share", "aim": f">= {aim}",
                }
            )  # fmt: skip
    return found


def seen(python: Path, folder: Path) -> set[Edge]:
    """The edges that jedi finds."""
    script = [str(python), str(ROOT / "bench" / "links_theirs.py"), str(folder), MOST]
    done = subprocess.run(script, capture_output=True, text=True, check=True)
    return {_plain(edge) for edge in json.loads(done.stdout)["edges"]} - {("", "", "", "")}


def linked(folder: Path) -> set[Edge]:
    """The edges that we find, of a copy of the package."""
    with tempfile.TemporaryDirectory(prefix="spak-bench-") as place:
        root, store = Path(place) / "code", Store(Path(place) / "code.sqlite")
        shutil.copytree(folder, root / folder.name, ignore=shutil.ignore_patterns("__pycache__"))
        update(store, root)
        names = store.rows("SELECT path, qual, kind FROM file JOIN symbol USING (content)")
        rows = store.rows(
            "SELECT a.text, b.text FROM link JOIN name a ON a.id = caller JOIN name b ON b.id = callee"
            " WHERE role IN ('call', 'deco')"
        )
        store.close()
    kinds = {(path, qual): kind for path, qual, kind in names}
    found = set()
    for ends in rows:
        caller, callee = ((*end.partition(":")[2].partition("#")[::2],) for end in ends)
        while kinds.get(caller) in ("variable", "constant"):
            caller = (caller[0], caller[1].rpartition(".")[0])
        if kinds.get(callee) in ("function", "class", "interface"):
            found.add(_plain((*caller, *callee)))
    return found - {("", "", "", "")}


def _plain(edge: Any) -> Edge:
    """An edge with second definitions, stubs and constructors as the first, the source and the class."""
    caller, callee = (
        (path.replace(".pyi", ".py"), qual.partition("~")[0]) for path, qual in (edge[:2], edge[2:4])
    )
    callee = (callee[0], callee[1].removesuffix(".__init__"))
    return ("", "", "", "") if caller == callee else (*caller, *callee)
