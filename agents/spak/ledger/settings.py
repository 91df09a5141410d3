"""The table `[checkpoints]` of spak.toml: the log's name and key, and where its checkpoints go.

Takes the values, whose types `spak.config` has judged; gives `Checkpoints`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spak.errors import LedgerError, UsageError
from spak.ledger.note import WITNESS, Verifier, is_name, verifier
from spak.ledger.witness import Witness

KEYS: Mapping[str, type] = {"log": str, "key": str, "to": list, "witnesses": list, "token_env": str}


@dataclass(frozen=True, slots=True)
class Checkpoints:
    """The log of a folder of runs; `key` is the name of one of `spak keys`, empty for the usual one."""

    log: str = ""
    key: str = ""
    to: tuple[str, ...] = ()
    witnesses: tuple[Witness, ...] = ()
    token_env: str = ""
    """The variable with the token of the places that are addresses."""


def read(values: Mapping[str, Any]) -> Checkpoints:
    """Raises: UsageError `usage.config` for what is no name, no place or no witness."""
    log, places = values.get("log", ""), values.get("to", [])
    if log and not is_name(log):
        raise _bad("log", log, "a name such as example.com/team, without + and spaces")
    for item in places:
        if not isinstance(item, str) or not item or item.startswith("-"):
            raise _bad("to", item, "folders, git+ and a remote, or addresses")
    return Checkpoints(
        log=log,
        key=values.get("key", ""),
        to=tuple(_at_home(item) for item in places),
        witnesses=tuple(_witness(item) for item in values.get("witnesses", [])),
        token_env=values.get("token_env", ""),
    )


def _at_home(place: str) -> str:
    try:
        return str(Path(place).expanduser()) if place.startswith("~") else place
    except RuntimeError as error:  # nobody of that name
        raise _bad("to", place, "a home folder that exists") from error


def _witness(item: Any) -> Witness:
    hint = '{ url = "https://...", key = "name+id+key" }, as the witness names them'
    if not isinstance(item, dict) or item.keys() != {"url", "key"} or not isinstance(item["key"], str):
        raise _bad("witnesses", item, hint)
    url, key = item["url"], _key(item["key"])
    if not isinstance(url, str) or not url.startswith(("https://", "http://")) or key is None:
        raise _bad("witnesses", item, hint)
    return Witness(url, key)


def _key(text: str) -> Verifier | None:
    try:
        key = verifier(text)
    except LedgerError:
        return None
    return key if key.kind == WITNESS else None


def _bad(key: str, value: object, hint: str) -> UsageError:
    return UsageError("usage.config", f"[checkpoints] {key} can not be {value!r}", hint)
