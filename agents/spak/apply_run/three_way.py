"""What becomes of one path of a folder that a run's changes are brought into.

Takes three things that stood there: in the run when it began (`base`), in the run now (`wanted`) and in the
folder now (`found`); gives what is to stand there, or why nobody can say. Pure. Texts that both sides
changed are merged by lines (spak.merge); what cannot be merged without a conflict is one.
"""

from __future__ import annotations

from dataclasses import dataclass

from spak import canon
from spak.apply_run.user_folder import Thing
from spak.merge import merge

MOST = 4 << 20
"""Bytes of a text that is merged; two sides that changed a longer one are a conflict."""

Side = tuple[Thing, bytes]


@dataclass(frozen=True, slots=True)
class Conflict(Exception):
    """Both sides changed it, and differently."""

    why: str


def joined(base: Side, wanted: Side, found: Side) -> Side:
    """The path's new content. Raises: Conflict."""
    if found[0] in (base[0], wanted[0]):
        return wanted if found[0] == base[0] else found
    kinds = (base[0].kind, wanted[0].kind, found[0].kind)
    if kinds == ("f", "f", "f"):
        return _merged(base, wanted, found)
    if not found[0].kind:
        raise Conflict("it is gone from the folder, and the run changed it")
    if found[0].kind == "other":
        raise Conflict("something that is no file stands there now")
    if not base[0].kind:
        raise Conflict("there is such a file by now, and the run made another")
    if not wanted[0].kind:
        raise Conflict("it was edited since, and the run deleted it")
    raise Conflict("it was edited since, and one of both is a link")


def _merged(base: Side, wanted: Side, found: Side) -> Side:
    old, run, now = (side[0] for side in (base, wanted, found))
    executable = run.executable if now.executable == old.executable else now.executable
    data = _content(base, wanted, found)
    return Thing("f", canon.digest(data), executable), data


def _content(base: Side, wanted: Side, found: Side) -> bytes:
    old, run, now = (side[0].digest for side in (base, wanted, found))
    if now in (old, run):
        return wanted[1]
    if run == old:
        return found[1]
    texts = [side[1] for side in (base, wanted, found)]
    if any(b"\0" in data or len(data) > MOST for data in texts):
        raise Conflict("both changed it, and it is no text that can be merged")
    one = merge(*(data.decode("utf-8", "surrogateescape") for data in texts))
    if not one.clean:
        places = "one place" if one.conflicts == 1 else f"{one.conflicts} places"
        raise Conflict(f"both changed the same lines, in {places}")
    return one.text.encode("utf-8", "surrogateescape")
