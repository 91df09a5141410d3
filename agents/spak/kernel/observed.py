"""What a run has seen of the world, as records carry it, and the questions that it has not answered.

Takes the `facts` of observe proposals; gives a `spak.policy` World that answers from them and from nothing
else, and notes what it could not answer. Looking is not done here: the runner answers questions
(`spak.runner.observe`), so that a replay sees what the run saw.

    questions  {"paths": [text], "hosts": [name], "rows": [request],
                "patches": [reference], "texts": [reference]}
    facts      {"paths": [[text, place, path, kind, links, note]], "hosts": [[name, [address]]],
                "rows": [[request, [[value]]]], "trouble": [code, why],
                "patches": [[reference, code, message, [path], [secret], kind of secret]],
                "texts": [[reference, bytes, [secret], kind of secret]]}

Members that hold nothing are left out. A path may be any text, so it is in a list and is no member's name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from spak import canon
from spak.datalog import Request, Session
from spak.datalog.values import Value, decode, from_json
from spak.policy.actions import PatchSeen, Seen, TextSeen, World

KINDS = ("paths", "hosts", "rows", "patches", "texts")
TROUBLES = (
    "world.too_large", "world.unreadable", "world.unknown", "world.timeout", "world.failed",
    "world.store", "world.busy", "policy.observation",
)  # fmt: skip
"""Why a look at the world may have failed; then there is no permission."""

_PLACES = ("inside", "outside", "refused")
_FILES = ("file", "folder", "missing", "other")
_UNSEEN = Seen("refused", "", note="not looked at")
NOTHING: Mapping[str, Any] = MappingProxyType({})
_NO_ROWS: dict[bytes, Any] = {}
_UNLOOKED: tuple[
    dict[str, Seen], dict[str, tuple[str, ...]], dict[bytes, PatchSeen], dict[bytes, TextSeen],
] = ({}, {}, {}, {})  # fmt: skip
"""What is known of the world where nobody has looked."""

Questions = Mapping[str, list[Any]]
Facts = Mapping[str, list[Any]]


class Malformed(Exception):
    """An observation that nobody could have made."""


class Observed:
    """Answers by question, and what was asked in vain."""

    def __init__(self, facts: Facts) -> None:
        """Raises: Malformed."""
        self.facts = facts
        self._asked: dict[str, dict[Any, Any]] = {}
        if not facts:
            self._paths, self._hosts, self._patches, self._texts = _UNLOOKED
            self.rows, self.trouble, self.why = _NO_ROWS, "", ""
            return
        try:
            self._paths = {item[0]: _seen(item) for item in facts.get("paths", ())}
            self._hosts = {item[0]: _texts(item[1]) for item in facts.get("hosts", ())}
            self.rows = {canon.dumps(item[0]): item[1] for item in facts.get("rows", ())}
            self._patches = {canon.dumps(item[0]): _patch(item) for item in facts.get("patches", ())}
            self._texts = {canon.dumps(item[0]): _text(item) for item in facts.get("texts", ())}
            self.trouble, self.why = (*facts.get("trouble", ()), "", "")[:2]
            if self.trouble and self.trouble not in TROUBLES:
                self.trouble = "policy.observation"
        except (TypeError, IndexError, KeyError, ValueError, AttributeError) as error:
            raise Malformed from error

    def world(self, declared: Mapping[str, Mapping[str, str]] = NOTHING) -> World:
        """The world as far as it was observed, for the facts of an action; `declared` is what the entries of
        tools say that their arguments are."""
        return World(
            look=self._look,
            resolve=self._resolve,
            patched=self._patched,
            whole=self._whole,
            declared=declared,
        )

    def answer(
        self, session: Session, past: Callable[[Request], list[tuple[Value, ...]] | None] | None = None
    ) -> bool:
        """Supply what was observed to a session; False, and noted, when it asks for more.

        `past` answers questions about what happened before. Raises: PolicyError for rows that do not answer.
        """
        while requests := session.requests():
            for request in requests:
                if past is not None and (known := past(request)) is not None:
                    session.supply(request, known)
                    continue
                asked = request.to_json()
                name = canon.dumps(asked)
                if name in self.rows:
                    rows = [tuple(decode(from_json(value)) for value in row) for row in self.rows[name]]
                    session.supply(request, rows)
                else:
                    self._ask("rows", name, asked)
            if "rows" in self._asked:
                return False
        return True

    def questions(self) -> Questions:
        """What was asked and is not answered, in the order of asking."""
        return {kind: list(self._asked[kind].values()) for kind in KINDS if kind in self._asked}

    def _ask(self, kind: str, key: Any, question: Any) -> None:
        self._asked.setdefault(kind, {})[key] = question

    def _look(self, text: str) -> Seen:
        if text not in self._paths:
            self._ask("paths", text, text)
        return self._paths.get(text, _UNSEEN)

    def _patched(self, reference: Mapping[str, Any]) -> PatchSeen | None:
        name = canon.dumps(reference)
        if name not in self._patches:
            self._ask("patches", name, reference)
        return self._patches.get(name)

    def _whole(self, reference: Mapping[str, Any]) -> TextSeen | None:
        name = canon.dumps(reference)
        if name not in self._texts:
            self._ask("texts", name, reference)
        return self._texts.get(name)

    def _resolve(self, host: str) -> tuple[str, ...]:
        if host not in self._hosts:
            self._ask("hosts", host, host)
        return self._hosts.get(host, ())


def lists_of_servers(asked: Questions) -> bool:
    """Whether all that is asked is what MCP servers list: a law asks it once somebody permits the call."""
    return {*asked} == {"rows"} and all(pred == "mcp_listed" for pred, _ in asked["rows"])


def merged(known: Facts, more: Any) -> Facts:
    """Both observations; of two answers to a question the first counts. Raises: Malformed."""
    kinds = (*KINDS, "trouble")
    if not isinstance(more, Mapping) or any(not isinstance(more.get(kind, []), list) for kind in kinds):
        raise Malformed
    found = {kind: [*known.get(kind, ()), *more.get(kind, ())] for kind in kinds}
    return {kind: items for kind, items in found.items() if items}


def seen_json(text: str, seen: Seen) -> list[Any]:
    """An observation of a path, as it stands in a record."""
    return [text, seen.place, seen.path, seen.kind, seen.links, seen.note]


def _seen(item: Any) -> Seen:
    text, place, path, kind, links, note = item
    if place not in _PLACES or kind not in _FILES or type(links) is not int:
        raise ValueError
    if not all(type(part) is str for part in (text, path, note)):
        raise ValueError
    return Seen(place, path, kind, links, note)


def patch_json(reference: Mapping[str, Any], seen: PatchSeen) -> list[Any]:
    """What was read in a patch, as it is in a record."""
    return [reference, seen.code, seen.message, list(seen.paths), list(seen.names), seen.secret]


def _patch(item: Any) -> PatchSeen:
    _, code, message, paths, names, secret = item
    if not all(type(part) is str for part in (code, message, secret)):
        raise ValueError
    return PatchSeen(code, message, _texts(paths), _texts(names), secret)


def text_json(reference: Mapping[str, Any], seen: TextSeen) -> list[Any]:
    """What was read in a long text, as it is in a record."""
    return [reference, seen.size, list(seen.names), seen.secret]


def _text(item: Any) -> TextSeen:
    _, size, names, secret = item
    if type(size) is not int or type(secret) is not str:
        raise ValueError
    return TextSeen(size, _texts(names), secret)


def _texts(items: Any) -> tuple[str, ...]:
    if not isinstance(items, list) or not all(type(item) is str for item in items):
        raise ValueError
    return tuple(items)
