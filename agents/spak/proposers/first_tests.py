"""The proposer `first_tests`: tests that pin what untested code answers before what it depends on changes.

Takes a PlanRequest and the MeasureCall of its workspace; gives a call of `apply_patch` that adds one file of
tests, or a refusal with a code. Which functions are untested is what the guard of symbols asks the model of
the code; sandbox/guest/pins_guest.py calls them, in two processes, and what answers otherwise the second time
is left out. It writes nothing, and does not say that an answer is right: docs/strategies.md.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from keyword import iskeyword
from typing import Any

from spak import paths
from spak import schema_parts as parts
from spak.lang.catalog import NamedEntry
from spak.patch.make import make
from spak.ports import Candidate, MeasureCall, PlanRequest, Search
from spak.proposers import guest
from spak.proposers.fitting import fit

TOOL, CODE, GUEST = "apply_patch", "pins.options", "pins_guest.py"
MOST = 60
"""Functions that are pinned."""
_SCHEMA = parts.members(
    ["path", "file"],
    path=parts.path("The Python file that is to change."),
    file=parts.path("The file of tests to write; its folder is where imports begin."),
)
_HINTS = {
    "pins.nothing": "change the file: the guard has no untested function to name",
    "pins.exists": "name another file, or extend this one by hand",
    "pins.unanswered": "write a test of these by hand; the evidence says why",
}


class FirstTests:
    """The proposer that writes the tests first."""

    entry = NamedEntry("first_tests", "pins what untested functions answer now, as tests", _SCHEMA)

    def search(self, request: PlanRequest, place: MeasureCall) -> Search:
        """One candidate, or a refusal. Raises: UsageError `pins.options`; UnavailableError; RunError
        `pins.incomplete`; Cancelled."""
        fit(CODE, _SCHEMA, request.options)
        path, file = (str(request.options[name]) for name in ("path", "file"))
        if not (place.workspace / path).is_file():
            return _refused("pins.nothing", f"there is no file {path}")
        if (place.workspace / file).exists():
            return _refused("pins.exists", f"{file} exists")
        asked, other = _untested(place, path, file)
        if not asked:
            uncallable = f"; no calls can be made of {', '.join(other[:5])}" if other else ""
            return _refused(
                "pins.nothing", f"a test reaches each function that depends on {path}{uncallable}"
            )
        first = guest.ask(place, GUEST, {"functions": asked}, "pins.incomplete")
        chosen = [{**asked[at], "calls": [call for call, *_ in one["pins"]]} for at, one in enumerate(first)]
        second = guest.ask(place, GUEST, {"functions": chosen}, "pins.incomplete")
        kept = [
            {**one, "pins": [pin for pin in one["pins"] if pin in repeated["pins"]]}
            for one, repeated in zip(first, second, strict=True)
        ]
        pinned = [one for one in kept if one["pins"]]
        left = {
            str(one["symbol"]): str(one["why"] or "no answer that can be pinned came twice")
            for one in kept
            if not one["pins"]
        }
        left |= dict.fromkeys(other, "it cannot be called from the folder of the tests")
        if not pinned:
            return _refused("pins.unanswered", f"no answer of {len(left)} functions can be pinned", left=left)
        calls = sum(len(one["pins"]) for one in pinned)
        dropped = sum(len(one["pins"]) for one in first) - calls
        rest = f"; not: {', '.join(sorted(left)[:5])}" if left else ""
        checks = [
            _verdict("repeated", f"{calls} calls answer alike in two processes, {dropped} others left out"),
            _verdict("reached", f"{len(pinned)} of {len(asked) + len(other)} functions{rest}"),
        ]
        patch = make([(file, None, _tests(path, pinned).encode())])
        record = {"path": path, "functions": len(pinned), "calls": calls, "left": left}
        return Search((Candidate(TOOL, {"patch": patch}, checks=checks),), record)


def _untested(place: MeasureCall, path: str, file: str) -> tuple[list[dict[str, Any]], list[str]]:
    """The untested functions that depend on a file, as the guest takes them, and other untested symbols."""
    from spak.world.ask import Model
    from spak.world.index import update
    from spak.world.rank import cover
    from spak.world.store import Store

    store = Store(place.workspace.parent / paths.CODE)
    try:
        update(store, place.workspace, place.cancel)
        model = Model(store, place.workspace)
        named = [symbol for symbol, how in cover(model, path) if how == "untested"]
        found = [one for name in named for one in model.meant(name) if one.id == name]
    finally:
        store.close()
    base, asked = file.rpartition("/")[0], []
    for one in found:
        top = f"{base}/" * bool(base)
        module = one.path.removeprefix(top).removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        valid = all(part.isidentifier() and not iskeyword(part) for part in module.split("."))
        fits = valid and one.path.startswith(top) and one.path.endswith(".py")
        if fits and one.kind in ("function", "method") and re.fullmatch(r"\w+(\.\w+)?", one.qual):
            asked.append({"symbol": one.id, "base": base or ".", "module": module, "qual": one.qual})
    known = {one["symbol"] for one in asked[:MOST]}
    return asked[:MOST], [name for name in named if name not in known]


def _tests(path: str, pinned: Sequence[Mapping[str, Any]]) -> str:
    """The file of tests."""
    plain = path.encode("unicode_escape").decode().replace('"', "'")
    raises = any(pin[1] == "raises" for one in pinned for pin in one["pins"])
    lines = [
        f'"""What depends on {plain} answers now, pinned before a change: read it before you keep it."""',
        "",
        *sorted({f"import {one['module']}" for one in pinned}),
        *(["", "import pytest"] if raises else []),
    ]
    for one in pinned:
        name = re.sub(r"\W", "_", f"{one['module']}.{one['qual']}")
        lines += ["", "", f"def test_{name}():"]
        for call, how, answer in one["pins"]:
            if how == "raises":
                lines += [f"    with pytest.raises({answer}):", f"        {one['module']}.{call}"]
            else:
                lines.append(f"    assert {one['module']}.{call} == {answer}")
    return "\n".join((*lines, ""))


def _verdict(name: str, detail: str) -> dict[str, Any]:
    return {"name": name, "ok": True, "code": "", "detail": detail}


def _refused(code: str, message: str, **evidence: Any) -> Search:
    return Search((), {}, {"code": code, "message": message, "hint": _HINTS[code], **evidence})


__all__ = ["FirstTests"]
