"""`recall`: reads back what a `ref://N` in the prompt stands for: the list, a slice, or a search.

The texts are those of the run's own ledger, so nothing that left the prompt is lost. Answers are bounded;
what is longer is read in slices. It changes nothing and looks at nothing but the run's archive.
"""

from __future__ import annotations

from spak import schema_parts as parts
from spak.lang.catalog import ToolEntry
from spak.ports import Archive, Call, ToolResult
from spak.tools import results

LENGTH = 4_000
LISTED = 100
HITS = 20
AROUND = 80


class Recall:
    """The tool `recall`."""

    entry = ToolEntry(
        name="recall",
        version=1,
        summary="Reads what ref://N stands for; searches all refs for a text; without arguments lists them.",
        schema=parts.members(
            [],
            ref=parts.whole("N of ref://N.", 1),
            search=parts.text("A text to find, as it is written.", 200),
            start=parts.whole("First character of the slice, or first ref of the list.", 0),
            length=parts.whole("Characters of the slice.", 1, LENGTH),
        ),
        effect="pure",
        on_fail="retry",
        sandboxed=False,
        writes=False,
        idempotent=True,
        arguments={"ref": "text", "search": "text", "start": "text", "length": "text"},
    )

    def run(self, call: Call) -> ToolResult:
        return results.guarded(_recall, call)


def _recall(call: Call) -> ToolResult:
    archive, args = call.archive, call.args
    if archive is None:
        return results.failed("recall.nothing", "this run keeps no texts to recall")
    ref, start = args.get("ref"), int(args.get("start", 0))
    if "search" in args:
        return _search(archive, str(args["search"]), ref)
    if ref is None:
        return _list(archive, start)
    text = archive.text(ref)
    if text is None:
        return results.failed(
            "recall.unknown", f"there is no ref://{ref} in this run", "recall without arguments lists them"
        )
    end = start + int(args.get("length", LENGTH))
    rest = f"\n[{len(text) - end} characters more: start {end}]" if end < len(text) else ""
    return results.done(text[start:end] + rest, ref=ref)


def _list(archive: Archive, start: int) -> ToolResult:
    kept = [item for item in archive.refs() if item.ref >= start]
    lines = [f"ref://{item.ref} {item.name} {item.size}B" for item in kept[:LISTED]]
    if len(kept) > LISTED:
        lines.append(f"[{len(kept) - LISTED} more: start {kept[LISTED].ref}]")
    return results.done("\n".join(lines) or "nothing yet", refs=len(kept))


def _search(archive: Archive, wanted: str, ref: int | None) -> ToolResult:
    """Where a text stands, newest ref first, each place with some characters around it."""
    lines: list[str] = []
    for item in reversed(archive.refs()):
        if ref is not None and item.ref != ref:
            continue
        text = archive.text(item.ref) or ""
        at = text.find(wanted)
        while at >= 0 and len(lines) < HITS:
            around = text[max(0, at - AROUND) : at + len(wanted) + AROUND].replace("\n", " ")
            lines.append(f"ref://{item.ref} at {at}: {around}")
            at = text.find(wanted, at + len(wanted))
        if len(lines) == HITS:
            break
    if not lines:
        return results.failed("recall.no_match", f"no kept text holds {wanted[:80]!r}", "search for less")
    return results.done("\n".join(lines), hits=len(lines))
