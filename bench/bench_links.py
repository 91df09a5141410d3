"""Call edges of four packages beside those of jedi: how many of ours it confirms, how many of its we find;
and the same of repowise, codegraph and code-review-graph (`bench.links_peers`).

Only when named (`make bench ARGS=links`): the first time it installs the packages of requirements-links.lock,
with their hashes, into `.venv-links`. An edge is a caller and a callee, both functions or classes of the
package; a constructor counts as its class, and a call of itself is left out on all sides. jedi is not always
right: on attrs most of what it does not confirm are calls of classes that it does not see, and on httpx all
of it are class methods of an enumeration. A program that cannot be installed here has no figure.

Then `why` of edges of any kind, drawn at random: each has to be derived again from the facts of its file, as
it is in the store, with file, line and rule.
"""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from bench import links_peers
from bench.bench_peers import installed
from bench.sizes import QUICK, sized
from spak.world.ask import RULES, Model
from spak.world.index import update
from spak.world.store import Store

ROOT = Path(__file__).resolve().parents[1]
LOCK, PLACE = ROOT / "requirements-links.lock", ROOT / ".venv-links"
AIMS = {"attr": (0.95, 0.70), "click": (0.98, 0.80), "httpx": (0.98, 0.80), "typer": (0.98, 0.80)}
"""Precision and recall of each package."""
MOST = str(sized(0, 40))
"""Calls of a package that jedi is asked about; 0 is all."""
WHY = sized(200, 10)
"""Edges of a package whose `why` is asked."""
Edge = tuple[str, str, str, str]


def rows() -> list[dict[str, Any]]:
    """The figures: name, ours, floor, unit, aim."""
    python, found = installed(PLACE, LOCK), []
    for package, aims in list(AIMS.items())[: sized(None, 1)]:
        folder = next(PLACE.glob("lib/python*/site-packages")) / package
        ours, theirs = linked(folder), seen(python, folder)
        found += _compared(package, "", ours, theirs, aims)
        for peer in () if QUICK else links_peers.PEERS:
            others = links_peers.edges(peer, folder)
            edges = None if others is None else {_plain(edge) for edge in others} - {("", "", "", "")}
            found += _compared(package, f" of {peer.name}", edges, theirs, None)
        found.append(unexplained(folder))
    return found


def _compared(
    package: str, whose: str, edges: set[Edge] | None, oracle: set[Edge], aims: tuple[float, float] | None
) -> list[dict[str, Any]]:
    """Precision and recall of edges; without a figure where there are none."""
    both = len(edges & oracle) if edges else 0
    count = f"{len(edges)} edges, jedi {len(oracle)}" if edges else "not installed here"
    return [
        {
            "name": f"links of {package}: {name}{whose}, {count}",
            "ours": round(both / len(of), 3) if edges and of else None,
            "floor": None, "unit": "share", "aim": f">= {aims[at]}" if aims else "",
        }
        for at, (name, of) in enumerate((("precision", edges), ("recall", oracle)))
    ]  # fmt: skip


def unexplained(folder: Path) -> dict[str, Any]:
    """How many of WHY random edges `spak world why` does not explain as the store has them."""
    with tempfile.TemporaryDirectory(prefix="spak-bench-") as place:
        root, store = Path(place) / "code", Store(Path(place) / "code.sqlite")
        shutil.copytree(folder, root / folder.name, ignore=shutil.ignore_patterns("__pycache__"))
        update(store, root)
        model = Model(store, root)
        edges = store.rows(
            "SELECT a.text, b.text, how, role, lines FROM link JOIN name a ON a.id = caller"
            " JOIN name b ON b.id = callee ORDER BY 1, 2, 3, 4"
        )
        drawn = random.Random(folder.name).sample(edges, min(WHY, len(edges)))
        without = 0
        for caller, callee, how, role, lines in drawn:
            length = len((root / caller.partition(":")[2].partition("#")[0]).read_text().splitlines())
            numbers = tuple(map(int, lines.split()))
            replayed = (how, role, numbers) in model.replayed(caller, callee)
            without += not (replayed and RULES.get(how) and numbers and 1 <= numbers[0] <= length)
        store.close()
    name = f"links of {folder.name}: {len(drawn)} of {len(edges)} edges, without file, line and rule"
    return {"name": name, "ours": without, "floor": 0, "unit": "edges", "aim": "<= 0"}


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
