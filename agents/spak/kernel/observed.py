"""What a run has seen of the world, as records carry it, and the questions that it has not answered.

Takes the `facts` of observe proposals; gives a `spak.policy` World that answers from them and from nothing
else, and notes what it could not answer. Looking is not done here: the runner answers questions
(`spak.runner.observe`), so that a replay sees what the run saw.

    questions  {"paths": [text], "globs": [pattern], "hosts": [name], "rows": [request]}
    facts      {"paths": [[text, place, path, kind, links, note]], "globs": [[pattern, [path]]],
                "hosts": [[name, [address]]], "rows": [[request, [[value]]]]}

Members that hold nothing are left out. A path or a pattern may be any text, so it stands in a list and is no
member's name.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from spak import canon
from spak.policy.actions import Seen, World

KINDS = ("paths", "globs", "hosts", "rows")
_PLACES = ("inside", "outside", "refused")
_FILES = ("file", "folder", "missing", "other")
_UNSEEN = Seen("refused", "", note="not looked at")

Questions = Mapping[str, list[Any]]
Facts = Mapping[str, list[Any]]


class Malformed(Exception):
    """An observation that nobody could have made."""


class Observed:
    """Answers by question, and what was asked in vain."""

    def __init__(self, facts: Facts) -> None:
        """Raises: Malformed."""
        try:
            self._paths = {item[0]: _seen(item) for item in facts.get("paths", ())}
            self._globs = {item[0]: _texts(item[1]) for item in facts.get("globs", ())}
            self._hosts = {item[0]: _texts(item[1]) for item in facts.get("hosts", ())}
            self.rows = {canon.dumps(item[0]): item for item in facts.get("rows", ())}
        except (TypeError, IndexError, KeyError, ValueError, AttributeError) as error:
            raise Malformed from error
        self._asked: dict[str, dict[Any, Any]] = {kind: {} for kind in KINDS}

    @property
    def world(self) -> World:
        return World(look=self._look, spread=self._spread, read=None, resolve=self._resolve)

    def ask(self, request: Any) -> None:
        """Note a question to an external predicate."""
        self._asked["rows"][canon.dumps(request)] = request

    def questions(self) -> Questions:
        """What was asked and is not answered, in the order of asking."""
        return {kind: list(found.values()) for kind, found in self._asked.items() if found}

    def _look(self, text: str) -> Seen:
        if text not in self._paths:
            self._asked["paths"][text] = text
        return self._paths.get(text, _UNSEEN)

    def _spread(self, pattern: str) -> tuple[str, ...]:
        if pattern not in self._globs:
            self._asked["globs"][pattern] = pattern
        return self._globs.get(pattern, ())

    def _resolve(self, host: str) -> tuple[str, ...]:
        if host not in self._hosts:
            self._asked["hosts"][host] = host
        return self._hosts.get(host, ())


def merged(known: Facts, more: Any) -> Facts:
    """Both observations; of two answers to a question the first counts. Raises: Malformed."""
    if not isinstance(more, Mapping) or any(not isinstance(more.get(kind, []), list) for kind in KINDS):
        raise Malformed
    found = {kind: [*known.get(kind, ()), *more.get(kind, ())] for kind in KINDS}
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


def _texts(items: Any) -> tuple[str, ...]:
    if not isinstance(items, list) or not all(type(item) is str for item in items):
        raise ValueError
    return tuple(items)
