"""Secrets of a host: put into the arguments of a tool just before it is called, taken out of what it says.

A permit, a prompt and an approval hold only the name, `secret://NAME`; the policy decides which argument of
which tool may name which secret. Takes the arguments as they were permitted and what was observed for them;
gives those that the tool is called with. What was judged is what is used: a secret in a text that was judged
as a path, a pattern or a host is refused, because its value was not judged, and one in a text that the permit
holds by reference is refused, because nobody who read the permit saw its name. The host's redactor takes the
values out of what comes back. What a tool writes into a file or sends away is not looked at: that is the
policy's to permit.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from re import Match
from typing import Any

from spak.errors import RunError, UsageError
from spak.policy.facts import SECRET_NAME, is_reference
from spak.secrets.secret import Secret

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,63}")


def places_of(table: Any) -> dict[str, Mapping[str, str]]:
    """Where each secret of the table `[secrets]` is. Raises: UsageError `usage.config`."""
    hint = 'NAME = { env = "VARIABLE" } or { file = "/path" }; names are letters, digits and _'
    if not isinstance(table, dict):
        raise UsageError("usage.config", "[secrets] is not a table", hint)
    for name, place in table.items():
        known = isinstance(place, dict) and len(place) == 1 and next(iter(place)) in ("env", "file")
        if not (_NAME.fullmatch(name) and known and all(isinstance(v, str) and v for v in place.values())):
            raise UsageError("usage.config", f"[secrets] {name} can not be {place!r}", hint)
    return table


class Secrets:
    """The secrets by name. They show themselves to nobody but the tool."""

    def __init__(self, values: Mapping[str, Secret] | None = None) -> None:
        self._values = dict(values or {})

    def __repr__(self) -> str:
        return f"Secrets({', '.join(sorted(self._values))})"

    def values(self) -> tuple[Secret, ...]:
        """The values, to be kept out of records."""
        return tuple(self._values.values())

    def filled(
        self, args: Mapping[str, Any], observed: Mapping[str, Any], permitted: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """The arguments with values for names; `permitted` has references where `args` have their texts.

        Raises: RunError `secret.unknown`, `secret.judged`, `secret.long_text`.
        """
        if not _named(args):
            return dict(args)
        judged = [item[0] for kind in ("paths", "hosts") for item in observed.get(kind, ())]
        judged += [use[2] for _, line in observed.get("lines", ()) for use in line.get("uses", ())]
        for text in judged:
            if SECRET_NAME.search(text):
                raise RunError(
                    "secret.judged",
                    "a secret was given where a path or a host was judged by its name",
                    "give secrets to arguments that are neither",
                )
        filled: dict[str, Any] = self._fill(args, args if permitted is None else permitted)
        return filled

    def _fill(self, value: Any, permitted: Any) -> Any:
        if is_reference(permitted):
            if _named(value):
                raise RunError(
                    "secret.long_text",
                    "a secret is named in a long text, or in one that is put together with it",
                    "name the secret in an argument of its own, or in a short text",
                )
            return value
        if isinstance(value, str):
            return SECRET_NAME.sub(self._value, value)
        if isinstance(value, Mapping):
            return {name: self._fill(item, permitted[name]) for name, item in value.items()}
        if isinstance(value, (list, tuple)):
            return [self._fill(*both) for both in zip(value, permitted, strict=True)]
        return value

    def _value(self, found: Match[str]) -> str:
        secret = self._values.get(found[1])
        if secret is None:
            raise RunError(
                "secret.unknown",
                f"there is no secret {found[1]} here",
                "name it in [secrets] of spak.toml, and set what it names",
            )
        return secret.reveal()


def _named(value: Any) -> bool:
    """Whether a name of a secret stands in a value, where the policy looks for them."""
    if isinstance(value, str):
        return SECRET_NAME.search(value) is not None
    if isinstance(value, Mapping):
        return any(_named(item) for item in value.values())
    return isinstance(value, (list, tuple)) and any(_named(item) for item in value)
