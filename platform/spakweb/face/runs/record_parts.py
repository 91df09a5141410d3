"""One record for its page: what it says, the decision with its proof or why-not, output, signal, files.

Takes a record and the run's blobs; gives parts of plain text that a template escapes. Blobs of an imported
run were made elsewhere: what is not as expected is shown as it stands, never an error.
"""

from __future__ import annotations

import difflib
import html
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from spak.costs import cost_of
from spak.costs.run_cost import NANOUSD, TOKENS
from spak.datalog.explain import Proof
from spak.errors import RunError, UserError
from spak.kernel.replay import Replay
from spak.ports import Blobs
from spak.records import Authority, Kind, Record, decode
from spak.runner.blobs import expand, prompt_of
from spak.runner.views.run_json import outline
from spak.secrets import which
from spak.workspace.parted import Entry, differing
from spak.workspace.store import Store
from spak.workspace.tree import at, differences, load
from spakweb.face.runs.prompts import Piece, pieces
from spakweb.ground.unsafe_text import reveal
from spakweb.store.ledger.store import DatabaseLedgers
from spakweb.store.ledger.workspaces import store_of
from spakweb.store.runs import words
from spakweb.store.runs.models import Run, RunRecord
from spakweb.work.sources import leaving

MOST = 64 * 1024
"""Characters of one text that a page shows; the download has all."""
LINES = 2000
"""Lines of a difference that a page shows."""
FILES = 50
ATTEMPTS = 200
"""Attempts of a step that a record offers."""
BINARY = "\0"
SPENT = (TOKENS, NANOUSD, "usage")
"""Members of a side that `spent` shows."""
USAGE = {
    "input": "of the prompt",
    "output": "of the answer",
    "cached": "read from a cache",
    "cache_write": "written to a cache",
}
"""The kinds of tokens that an engine counts."""
DERIVE = 5_000
"""Records after which a page does not derive a prompt again: it takes as long as a replay."""


@dataclass(frozen=True, slots=True)
class Part:
    """A titled piece of a record. `kind`: text, facts (pairs in `rows`), tree (`nodes`), diff (`rows`)."""

    title: str
    kind: str
    text: str = ""
    rows: list[tuple[str, str]] = field(default_factory=list)
    nodes: list[dict[str, Any]] = field(default_factory=list)
    cut: bool = False


def parts(run: Run, record: Record, blobs: Blobs) -> list[Part]:
    """What a record's page shows below its line."""
    found: list[Part] = []
    body = record.body
    if record.kind == Kind.GENESIS:
        return _genesis(body)
    if record.kind == Kind.PERMIT:
        found += _permit(record, blobs)
    if "out" in body:
        found.append(_text("Answer" if body.get("outcome") == "answered" else "Output", body["out"], blobs))
    if "candidates" in body:
        found.append(_text("Proposed plan", json.dumps(opened(body["candidates"], blobs), indent=2), blobs))
    if isinstance(body.get("metrics"), Mapping):
        found.append(_facts("Measured", {"signal": body.get("status", ""), **body["metrics"]}))
    if record.kind == Kind.ROUTE:
        chosen = ("signal", "code", "by", "to", "txn", "best")
        found.append(_facts("Signal", {name: body[name] for name in chosen if name in body}))
        found += _why(record, blobs)
        found += workspace_change(run, record)
    if record.kind == Kind.END:
        found.append(_facts("Outcome", {name: value for name, value in body.items() if name != "r3"}))
    if record.side:
        found += spent(record)
        shown = ("proof", "details", *(SPENT if cost_of(record.side).answers else ()))
        side = {name: value for name, value in record.side.items() if name not in shown}
        found += [_facts("Side notes (never part of a decision)", side)] if side else []
        if "details" in record.side:
            found.append(_text("Details", record.side["details"], blobs))
    found.append(_text("The record as JSON", json.dumps(body, indent=2, ensure_ascii=False), blobs))
    return found


def spent(record: Record) -> list[Part]:
    """What the answer of a model used: tokens, of which kinds, and its price. Empty for other records."""
    cost, usage = cost_of(record.side), record.side.get("usage")
    if not cost.answers:
        return []
    rows = [("tokens", words.figure(cost.tokens))]
    if isinstance(usage, Mapping):
        rows += [(USAGE.get(name, str(name)), words.figure(usage[name])) for name in usage]
    rows.append(("cost", words.money(cost.nanousd) if cost.priced else "not available"))
    return [Part("Tokens and cost", "facts", rows=rows)]


def _permit(record: Record, blobs: Blobs) -> list[Part]:
    args = record.body.get("args")
    found = [_facts("The action", {"act": record.body.get("act"), "name": record.body.get("name")})]
    if args:
        found.append(_text("Its arguments", json.dumps(opened(args, blobs), indent=2), blobs))
    return [*found, *_why(record, blobs)]


def _why(record: Record, blobs: Blobs) -> list[Part]:
    """What the decision was derived from; nothing where a record has no proof."""
    proof = record.side.get("proof")
    if not isinstance(proof, str):
        return []
    try:
        return [explanation(json.loads(blobs.get(proof)))]
    except (UserError, ValueError) as error:
        return [Part("Why", "text", f"The proof cannot be read: {error}")]


def attempts(run: Run, record: Record) -> list[dict[str, Any]]:
    """The attempts of the record's step, the newest `ATTEMPTS` and those around this one: `number` from 1,
    `seq` of the permit that each begins with, and whether it is this one. Empty where there is only one."""
    if not record.step:
        return []
    found = RunRecord.objects.filter(run=run, kind=Kind.PERMIT, task=record.task, step=record.step)
    count, now = found.count(), found.filter(seq__lte=record.seq).count()
    if count < 2:
        return []
    first = max(0, min(now - ATTEMPTS // 2, count - ATTEMPTS))
    seqs = found.order_by("seq").values_list("seq", flat=True)[first : first + ATTEMPTS]
    return [
        {"number": number, "seq": seq, "now": number == now, "count": count}
        for number, seq in enumerate(seqs, first + 1)
    ]


def explanation(decided: Any) -> Part:
    """A decision's proof tree, or what was missing for it."""
    if not isinstance(decided, Mapping):
        return _cut("Why", json.dumps(decided))
    reason = str(decided.get("reason", ""))
    try:
        proofs = [decided["proof"]] if "proof" in decided else decided.get("proofs", [])
        if proofs:
            return Part("Proof", "tree", reason, nodes=[_tree(proof) for proof in proofs])
        why = decided.get("why_not") or {}
        if "forbidden" in why:
            return Part("Why it is forbidden", "tree", reason, nodes=[_tree(why["forbidden"])])
        if "attempts" in why:
            return Part("Why not: what was missing", "tree", reason, nodes=[_why_not(why)])
        return _facts("Why not", {"reason": reason, **why})
    except (KeyError, TypeError, IndexError, AttributeError):
        return _cut("Why", json.dumps(decided, indent=2))


def _tree(proof: Mapping[str, Any]) -> dict[str, Any]:
    """The tree of `spak.datalog.explain` with its texts as plain text: templates escape."""
    top = Proof(tuple(proof["nodes"]), str(proof["policy"])).tree()
    stack = [top]
    while stack:
        node = stack.pop()
        node["text"], node["at"] = html.unescape(node["text"]), html.unescape(node["at"])
        stack += node["body"]
    return top


OTHER = ("act(", "tool(")
"""Facts whose absence says that a rule is about other acts than this one."""


def _why_not(why: Mapping[str, Any], depth: int = 0) -> dict[str, Any]:
    """What was missing, rule by rule; rules for other acts and tools stand folded at the end."""
    near: list[dict[str, Any]] = []
    other: list[dict[str, Any]] = []
    for attempt in why["attempts"]:
        found = {"text": attempt["rule"], "because": "rule", "at": attempt["at"]}
        found["body"] = _attempt(attempt, depth)
        elsewhere = any(str(item["atom"]).startswith(OTHER) for item in attempt["missing"])
        (other if elsewhere else near).append(found)
    if near and other:
        summary = f"{len(other)} rule{'' if len(other) == 1 else 's'} for other acts and tools"
        near.append({"text": summary, "because": "", "at": "", "body": other, "closed": True})
    return {"text": f"{why['goal']} does not hold", "because": "", "at": "", "body": near or other}


def _attempt(attempt: Mapping[str, Any], depth: int) -> list[dict[str, Any]]:
    below: list[dict[str, Any]] = []
    for item in attempt["missing"]:
        deeper = item.get("why_not")
        inner = [_why_not(deeper, depth + 1)] if deeper and deeper["attempts"] and depth < 20 else []
        below.append({"text": f"missing: {item['atom']}", "because": "", "at": "", "body": inner})
    for item in attempt["against"]:
        below.append({"text": f"against it: {item['atom']}", "because": "", "at": item["at"], "body": []})
    for condition in attempt["conditions"]:
        below.append({"text": f"where {condition}", "because": "", "at": "", "body": []})
    return below


def reason_of(record: Record, blobs: Blobs) -> str:
    """Why a permit asks or denies, in a sentence; empty where its proof says none."""
    proof = record.side.get("proof")
    try:
        found = json.loads(blobs.get(proof)) if isinstance(proof, str) else {}
    except (UserError, ValueError):
        return ""
    return str(found.get("reason", "")) if isinstance(found, Mapping) else ""


def _genesis(body: Mapping[str, Any]) -> list[Part]:
    rules, host = body.get("rules") or {}, body.get("host") or {}
    origin = {name: host.get(name) for name in ("run", "spec", "mode", "backend", "launcher", "parent")}
    found = [_facts("Where it began", {name: value for name, value in origin.items() if value})]
    found.append(_facts("Toolchain", host.get("toolchain") or {}))
    found.append(_facts("Inputs", rules.get("inputs") or {}))
    if isinstance(rules.get("spec"), str):
        found.append(_cut("The spec it runs", rules["spec"]))
    return [part for part in (*found, *_law(rules.get("policy"))) if part.rows or part.text]


def _law(policy: Any) -> Iterator[Part]:
    """What the operator and the team said."""
    levels = {"operator": "The operator's law", "team": "The team's rules"}
    for level, label in levels.items():
        texts = policy.get(level) if isinstance(policy, Mapping) else None
        for name, text in texts.items() if isinstance(texts, Mapping) else ():
            yield _cut(f"{label}: {name}", str(text))


def prompt_at(run: Run, seq: int) -> list[Piece]:
    """The prompt that a permit sent, derived again from the records before it; empty when it asked nothing.

    Raises: LookupError when the record stands too far along for a page.
    """
    if seq > DERIVE:
        raise LookupError(f"a page derives the prompts of the first {DERIVE:,} records")
    reader = DatabaseLedgers().reader(run.key)
    found = Replay()
    for record, _ in reader.read():
        found.feed(record)
        effect = found.state.r6
        if record.seq >= seq:
            if effect is None or found.rules is None or not effect.items or effect.id != record.content:
                return []
            prompt = prompt_of(effect, reader.blobs, found.rules)
            return pieces(prompt.text, outline(prompt))
    return []


# ---- the workspace


def workspace_change(run: Run, record: Record) -> list[Part]:
    """What the step that this route ends changed in the workspace, as diffs."""
    now = record.body.get("r3")
    if not isinstance(now, str):
        return []
    earlier = RunRecord.objects.filter(run=run, seq__lt=record.seq, kind=Kind.ROUTE).order_by("-seq")
    before = next((found for found in (root_of(bytes(row.line)) for row in earlier[:50]) if found), "")
    if not before:
        first = RunRecord.objects.filter(run=run, seq=0).first()
        before = root_of(bytes(first.line)) if first else ""
    return changed_files(run, before, now) if before and before != now else []


def changed_files(run: Run, before: str, now: str) -> list[Part]:
    """Diffs between two roots of the run's workspace, from its store; none when the store is elsewhere."""
    if run.agent:
        return sent_files(run, before, now)
    try:
        store = store_of(run)
        if not (store.knows(before) and store.knows(now)):
            return []
        old, new, hides = load(store, before), load(store, now), leaving.hides(run)
        found = []
        for path in differences(old, new)[:FILES]:
            nodes = [at(tree, path) for tree in (old, new)]
            if any(node is not None and node.kind == "d" for node in nodes):
                continue
            if which.secret(path):
                found.append(Part(reveal(path), "text", "By its name a file of secrets: not shown."))
                continue
            if any(node is not None and hides(path, _read(store, node)) for node in nodes):
                found.append(Part(reveal(path), "text", "By its contents a file of secrets: not shown."))
                continue
            texts = [_file(store, node) for node in nodes]
            found.append(changed_text(reveal(path), *texts))
        return found
    except (UserError, OSError, ValueError) as error:
        return [Part("Workspace", "text", f"The workspace's store cannot be read: {error}")]


def sent_files(run: Run, before: str, now: str) -> list[Part]:
    """The same of a guarded session, whose guard sends what changed and nothing else of its folder."""
    store, found = store_of(run), list[Part]()
    try:
        for path, *entries in islice(differing(store.read, before, now), FILES):
            word = "new file" if entries[0] is None else "deleted" if entries[1] is None else "changed"
            try:
                texts = [_entry(store, path, one) for one in entries]
            except UserError:
                said = "Its contents are not here: too large, or with a value of a secret."
                found.append(Part(f"{reveal(path)}: {word}", "text", said))
            else:
                found.append(changed_text(reveal(path), *texts))
    except UserError:
        pass  # what it changed is in its arguments, and nothing more came
    return found


def _entry(store: Store, path: str, one: Entry | None) -> str | None:
    """The text of a file that was sent, where a link leads. Raises: UserError where it was not sent."""
    if one is None:
        return None
    data = store.read(one.digest)
    if which.secret(path) or which.finds(path, data):
        raise RunError("workspace.object", "a file of secrets")
    return BINARY if b"\0" in data else data.decode("utf-8", "replace")


def _read(store: Store, node: Any) -> bytes:
    """The bytes of a file that a page may show, or the target of a link; of a longer one none."""
    return store.read(node.digest) if node.kind in ("f", "l") and node.size <= MOST else b""


def _file(store: Store, node: Any) -> str | None:
    if node is None or node.kind != "f":
        return None
    if node.size > MOST:
        return f"({node.size:,} bytes)"
    data = store.read(node.digest)
    return BINARY if b"\0" in data else data.decode("utf-8", "replace")


def changed_text(path: str, old: str | None, new: str | None) -> Part:
    """How two texts differ; None is no file."""
    word = "new file" if old is None else "deleted" if new is None else "changed"
    if BINARY in (old, new):
        return Part(f"{path}: {word}", "text", "Not a text.")
    one, other = ([] if text is None else text.removesuffix("\n").split("\n") for text in (old, new))
    return Part(f"{path}: {word}", "diff", rows=_changes(one, other))


def _changes(one: list[str], other: list[str]) -> list[tuple[str, str]]:
    lines = difflib.unified_diff(one, other, lineterm="", n=3)
    kinds = {"+": "added", "-": "removed", "@": "gap"}
    return [(kinds.get(line[:1], "same"), line) for line in list(lines)[2:LINES]]


def between(one: tuple[Record, Blobs], two: tuple[Record, Blobs]) -> Part:
    """What two records differ by, line by line: their output or answer if that is it, else their bodies."""
    bodies = [opened(record.body, blobs) for record, blobs in (one, two)]
    texts = [body.get("out") if isinstance(body, Mapping) else None for body in bodies]
    if not all(isinstance(text, str) for text in texts) or texts[0] == texts[1]:
        texts = [json.dumps(body, indent=2, ensure_ascii=False) for body in bodies]
    first, second = (str(text)[:MOST].split("\n")[:LINES] for text in texts)
    return Part("From the first to the second", "diff", rows=_changes(first, second))


def root_of(line: bytes) -> str:
    """The workspace that a record leaves, or that the run began with."""
    body = decode(line).body
    found = body.get("r3") or (body.get("rules") or {}).get("r3")
    return found if isinstance(found, str) else ""


# ---- pieces


def opened(value: Any, blobs: Blobs) -> Any:
    """With blobs put in; as it stands when they are not there."""
    try:
        return expand(value, blobs)
    except (UserError, TypeError, KeyError):
        return value


def _text(title: str, value: Any, blobs: Blobs) -> Part:
    found = opened(value, blobs)
    return _cut(title, found if isinstance(found, str) else json.dumps(found, indent=2, ensure_ascii=False))


def _cut(title: str, text: str) -> Part:
    return Part(title, "text", text[:MOST], cut=len(text) > MOST)


def _facts(title: str, found: Mapping[str, Any]) -> Part:
    rows = [(str(name), words.figure(value) if isinstance(value, int | float) else words.one_line(value, 400))
            for name, value in found.items() if value is not None and value != ""]  # fmt: skip
    return Part(title, "facts", rows=rows)


def is_commit(record: Record | RunRecord) -> bool:
    """Whether a record is the kernel's decision."""
    return record.authority == Authority.COMMIT
