"""Answering the gate's questions about the world: where paths lead, where hosts are.

Takes the questions of an `observe` effect and the workspace; gives the facts of its proposal
(spak.kernel.observed has the form of both). It opens nothing and decides nothing. Asked twice, it looks
twice: an effect happens only if the world is still what its permission rests on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from spak import canon
from spak.cancel import Cancel
from spak.datalog.externals import Request
from spak.datalog.values import encode, to_json
from spak.errors import RunError, UserError
from spak.files import beneath
from spak.kernel.observed import TROUBLES, patch_json, seen_json, text_json
from spak.paths import CODE
from spak.policy.actions import Seen
from spak.policy.facts import read_text, read_whole
from spak.ports import Blobs, Look
from spak.runner.blobs import expand
from spak.tools.observe.paths import Observer, resolve
from spak.tools.observe.predicates import PREDICATES, Table, answers

MAX_BYTES = 1 << 20
"""Bytes of an observation; `step` reads it whole, so that it is no blob."""


def observe(
    questions: Mapping[str, Any],
    workspace: Path,
    blobs: Blobs | None = None,
    cancel: Cancel | None = None,
    own: Table = PREDICATES,
) -> dict[str, Any]:
    """The facts that answer the questions, in their order; `blobs` has the texts that they refer to,
    `own` the operator's predicates.

    Raises: Cancelled.
    """
    eyes = Observer(workspace.resolve())
    rows = [Request.from_json(item) for item in questions.get("rows", ())]
    try:
        given = answers(rows, Look(workspace, cancel, workspace.parent / CODE), own)
    except UserError as error:
        code = error.code if error.code in TROUBLES else "policy.observation"
        return {"trouble": [code, _plain(error.message)]}
    found: dict[str, Any] = {
        "paths": [_seen(text, eyes.look(text)) for text in questions.get("paths", ())],
        "hosts": [[host, list(resolve(host, cancel))] for host in questions.get("hosts", ())],
        "rows": [
            [request.to_json(), [[to_json(encode(value)) for value in row] for row in answer]]
            for request, answer in zip(rows, given, strict=True)
        ],
    }
    if blobs is not None:
        try:
            found |= {
                kind: [
                    _plain_all(read(asked, str(expand(asked, blobs)))) for asked in questions.get(kind, ())
                ]
                for kind, read in _TEXTS.items()
            }
        except RunError:
            return {"trouble": ["world.too_large"]}
    found = {kind: items for kind, items in found.items() if items}
    return found if len(canon.dumps(found)) <= MAX_BYTES else {"trouble": ["world.too_large"]}


_TEXTS: Mapping[str, Callable[[Mapping[str, Any], str], list[Any]]] = {
    "patches": lambda asked, whole: patch_json(asked, read_whole(whole)),
    "texts": lambda asked, whole: text_json(asked, read_text(whole)),
}
"""How texts that are given by reference are read, by the kind of the question."""


def questions_of(facts: Mapping[str, Any]) -> dict[str, Any]:
    """The questions that an observation answered, to ask them again; addresses are pinned instead."""
    return {kind: [item[0] for item in facts[kind]] for kind in ("paths", "rows") if kind in facts}


def unchanged(
    facts: Mapping[str, Any],
    workspace: Path,
    clean: Callable[[Any], Any] = lambda seen: seen,
    cancel: Cancel | None = None,
    own: Table = PREDICATES,
) -> bool:
    """Whether the world still is as it was observed; `clean` removes secrets as it did then. Raises:
    Cancelled."""
    questions = questions_of(facts)
    if not questions:
        return True
    now = canon.loads(canon.dumps(clean(observe(questions, workspace, None, cancel, own))))
    return all(now.get(kind) == facts[kind] for kind in questions)


def _seen(text: str, seen: Seen) -> list[Any]:
    return [_plain(item) if isinstance(item, str) else item for item in seen_json(text, seen)]


def _plain_all(value: Any) -> Any:
    """A JSON value of texts that a record can hold."""
    if isinstance(value, list):
        return [_plain_all(item) for item in value]
    if isinstance(value, dict):
        return {name: _plain_all(item) for name, item in value.items()}
    return _plain(value) if isinstance(value, str) else value


def _plain(text: str) -> str:
    """A text that a record can hold: names of files may be any bytes."""
    return text.encode("utf-8", "backslashreplace").decode()


def facts(
    atoms: Sequence[Mapping[str, Any]],
    folder: Path,
    blobs: Blobs,
    hides: Callable[[str], bool] = lambda path: False,
) -> list[bool]:
    """The answers to file conditions, in order. A file that cannot be read contains nothing, and neither does
    one that `hides`: each answer would tell something of a secret. No file has a text that is too long."""
    return [_fact(atom["function"], _filled(atom["args"], blobs), folder, hides) for atom in atoms]


def _filled(args: Sequence[Any], blobs: Blobs) -> list[str]:
    try:
        return [str(item) for item in expand(args, blobs)]
    except RunError:
        return []


def _fact(function: str, args: Sequence[str], folder: Path, hides: Callable[[str], bool]) -> bool:
    content = beneath.content(folder, args[0]) if args else None
    if function == "file_exists" or content is None:
        return content is not None
    return len(args) > 1 and args[1].encode() in content and not hides(args[0])
