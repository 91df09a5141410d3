"""A guarded session as the draft of a spec: what it did that can be done again, as steps.

Takes the records, their blobs and what reads an object of the workspace; gives the text of a spec that
checks, which a person edits. Our tools become the steps that they were. What the agent's own tools did is not
known one by one: each transaction that was kept becomes a patch, with its paths beside it. Requests to the
model, what was denied, failed or taken back is left out, and what no step can say is a comment.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from spak.errors import EditRefused, UserError
from spak.guard import talk
from spak.lang.edit.write import quoted, value
from spak.lang.limits import MAX_BYTES
from spak.patch.make import make
from spak.ports import Blobs
from spak.records import Kind, Record
from spak.runner.blobs import expand
from spak.unseen import SIGNS
from spak.workspace.parted import Entry, differing

OTHER = ("model_request", "witnessed", "ask_person", "tunnel", "tunnel_closed")
"""Calls that become no steps."""
CHANGES = "contained"
MOST_FILE, MOST_PATCH = 64 << 10, 128 << 10
"""Bytes of a file, and of a patch, that a step holds."""
WORD = re.compile(r"[a-z][a-z0-9_]{0,63}")
MOST_GOAL = 200
Read = Callable[[str], bytes]


@dataclass(slots=True)
class Draft:
    """The parts of the spec, and how many steps it has."""

    agent: str = ""
    run: str = ""
    goal: str = ""
    parts: list[tuple[str, str]] = field(default_factory=list)
    """Each with the root of the workspace after it."""
    root: str = ""
    begun: str = ""

    @property
    def steps(self) -> int:
        """How many there are."""
        return sum("  step " in text for _, text in self.parts)

    @property
    def text(self) -> str:
        """The spec."""
        lines = [
            f"// A draft from a guarded session of {_plain(self.agent or 'an agent')}, run {self.run}.",
            "// Read each step before you run it: a step is done again as it was done then.",
            "",
            "TASK Session {",
            f"  GOAL {_written(self.goal or 'What the agent did.')}",
        ]
        size = sum(map(len, lines)) + 200
        for number, (_, text) in enumerate(self.parts):
            size += len(text.encode())
            if size > MAX_BYTES - 1000:
                left = len(self.parts) - number
                lines.append(f"  // {left} more are left out: a spec has {MAX_BYTES >> 10} KB at most.")
                break
            lines.append(text)
        if not any("  step " in line for line in lines):
            lines.append("  // Nothing that it did can be done again by a step.")
            lines.append('  step look: tool.list_files { path: "." }')
        return "\n".join([*lines, "}", ""])


def draft(records: Iterable[Record], blobs: Blobs, read: Read) -> Draft:
    """The draft of a session. Contents that `read` does not give are comments."""
    made = Draft()
    call: tuple[str, Mapping[str, Any]] | None = None
    act: Mapping[str, Any] = {}
    for record in records:
        body = record.body
        match record.kind:
            case Kind.GENESIS:
                host, rules = body.get("host") or {}, body.get("rules") or {}
                made.run, made.root = str(host.get("run", "")), str(rules.get("r3", ""))
                made.begun, made.agent = made.root, str((host.get("labels") or {}).get("agent", ""))
            case Kind.PERMIT if body.get("act") == "tool":
                args, call, act = body.get("args"), None, {}
                if body.get("allow") in (True, "ask") and isinstance(args, Mapping):
                    call = str(body.get("name")), args
            case Kind.ACT if call is not None:
                act = body
            case Kind.ROUTE if call is not None:
                good = act.get("outcome") == "exited" and not act.get("exit")
                if good and body.get("txn") != "rollback":
                    _add(made, *call, act, blobs, read)
                call = None
    return made


def _add(
    made: Draft, tool: str, args: Mapping[str, Any], act: Mapping[str, Any], blobs: Blobs, read: Read
) -> None:
    root = act.get("r3")
    before, made.root = made.root, root if isinstance(root, str) else made.root
    if tool == CHANGES:
        roots = [made.begun, *(after for after, _ in made.parts)]
        if made.root in roots and made.root != before:  # what came after it was taken back
            del made.parts[roots.index(made.root) :]
        elif made.root != before:
            made.parts.append((made.root, "\n".join(_patch(made, before, read))))
        return
    if tool == "model_request":
        made.goal = made.goal or _goal(args, blobs)
    if tool not in OTHER:
        made.parts.append((made.root, _step(f"{tool}_{made.steps + 1}", tool, args, blobs)))


def _step(name: str, tool: str, args: Mapping[str, Any], blobs: Blobs) -> str:
    """The step of a call; a comment where its arguments are not there or no spec can hold them."""
    if not all(WORD.fullmatch(word) for word in (tool, *args)):
        return "  // A call whose tool or arguments have no name that a spec can hold."
    try:
        whole = expand(args, blobs)
        inside = " ".join(f"{key}: {_written(item)}" for key, item in whole.items())
    except UserError:
        return f"  // {tool}: its arguments are not here, or no spec can hold them."
    return f"  step {name}: tool.{tool} {{ {inside} }}"


def _patch(made: Draft, before: str, read: Read) -> Iterator[str]:
    """The step of a transaction, after its paths."""
    edits: list[tuple[str, bytes | None, bytes | None]] = []
    size = 0
    try:
        for path, old, new in differing(read, before, made.root):
            try:
                contents = _content(read, old), _content(read, new)
                quoted(path)
                size += sum(len(one or b"") for one in contents)
                if size > MOST_PATCH:
                    raise EditRefused("edit.value", "too large", "")
            except (UserError, UnicodeDecodeError):
                yield f"  // {_plain(path)}: changed too; no text that a step can hold"
            else:
                yield f"  // {_plain(path)}"
                edits.append((path, *contents))
    except UserError:
        yield "  // The lists of what it changed are not here."
    text = make(edits, hashed=False)
    if text:
        name = f"change_{made.steps + 1}"
        yield f"  step {name}: tool.apply_patch {{ patch: {_written(text)} }}"


def _content(read: Read, one: Entry | None) -> bytes | None:
    """Raises: UserError, UnicodeDecodeError for what is no text, or is not there."""
    if one is None:
        return None
    if one.kind == "l" or one.size > MOST_FILE:
        raise EditRefused("edit.value", "a link, or too large", "")
    data = read(one.digest)
    quoted(data.decode("utf-8"))
    return data


def _goal(args: Mapping[str, Any], blobs: Blobs) -> str:
    """What the person asked for, by the first request that says it."""
    try:
        request = expand(args.get("request", ""), blobs)
    except UserError:
        return ""
    said = talk.asked(request) if isinstance(request, str) else []
    texts = [one.text for one in said if one.who == talk.PERSON and one.text.strip()]
    return _plain(texts[-1])[:MOST_GOAL] if texts else ""


def _plain(text: str) -> str:
    """On one line, without what no comment can hold."""
    seen = SIGNS.sub(" ", text)
    return " ".join("".join(one if one.isprintable() else " " for one in seen).split())


def _written(item: Any) -> str:
    """A value as spec text. Two braces are two braces, and no template; signs that nobody sees are escapes,
    which a text in triple quotes cannot have. Raises: EditRefused `edit.value`."""
    if isinstance(item, str) and SIGNS.search(item):
        return SIGNS.sub(lambda found: f"\\u{{{ord(found[0]):x}}}", _escaped(quoted(item)))
    source = value(item, "    ")
    if SIGNS.search(source):
        raise EditRefused("edit.value", "a sign that nobody sees", "")
    return _escaped(source)


def _escaped(source: str) -> str:
    return source.replace("{{", "\\{{")
