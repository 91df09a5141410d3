"""The history of a spec as one file: its versions, and the signed records of its merges.

`read(text)` takes the JSON lines that the platform writes (`lines` makes them) and gives a History: the
versions in order, and in words what does not hold. Chain, signatures and the texts that merges name are
checked here, without the platform. A version that somebody saved directly is signed by nobody. Pure.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from spak import canon
from spak.errors import OuterError, UserError
from spak.policy import approval

FORMAT = "spak.spec-history/1"
MOST = 64 << 20
"""Bytes of a file that is read."""


@dataclass(frozen=True, slots=True)
class Version:
    """A text that was a version: who made it, when (ms since 1970), why, and what it was merged from."""

    number: int
    text: str
    by: str
    at: int
    why: str = ""
    merge: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Record:
    """A record of the chain as it was written: canonical JSON, its hash, the signature over that."""

    line: str
    hash: str
    signature: str


@dataclass(frozen=True, slots=True)
class History:
    """`key` is the public key that the signatures were checked with, `wrong` what does not hold."""

    name: str
    key: str
    versions: tuple[Version, ...]
    records: int
    wrong: tuple[str, ...]


def lines(name: str, key: str, versions: Iterable[Version], records: Iterable[Record]) -> Iterator[str]:
    """The file, line by line."""
    yield _line({"format": FORMAT, "name": name, "key": key})
    for one in versions:
        yield _line(
            {
                "version": one.number,
                "text": one.text,
                "by": one.by,
                "at": one.at,
                "why": one.why,
                "merge": dict(one.merge) if one.merge else None,
            }
        )
    for record in records:
        yield _line({"record": record.line, "hash": record.hash, "signature": record.signature})


def read(text: str) -> History:
    """Raises: OuterError `outer.history` when it is no such file."""
    name, key = "", ""
    versions: list[Version] = []
    records: list[Record] = []
    for number, line in enumerate(text.splitlines(), 1):
        try:
            row = json.loads(line)
            if number == 1:
                if row["format"] != FORMAT:
                    raise _no_history("it says another format", number)
                name, key = _text(row["name"]), _text(row["key"])
            elif "version" in row:
                versions.append(_version(row, len(versions) + 1))
            else:
                records.append(Record(*(_text(row[word]) for word in ("record", "hash", "signature"))))
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise _no_history("it is damaged", number) from error
    if not versions:
        raise _no_history("it has no version", 1)
    merges, wrong = verify(records, key)
    return History(name, key, tuple(versions), len(records), (*wrong, *_unsigned(versions, merges)))


def verify(records: Iterable[Record], key: str) -> tuple[list[Mapping[str, Any]], list[str]]:
    """The bodies of the merges that the records hold, and what is wrong with the records, in words."""
    found: list[Mapping[str, Any]] = []
    wrong: list[str] = []
    previous = canon.ZERO
    for place, record in enumerate(records, 1):
        try:
            row = canon.loads(record.line.encode())
            holds = row["number"] == place and row["previous"] == previous
            what, body = row["what"], row["body"]
        except (UserError, ValueError, KeyError, TypeError):
            return found, [*wrong, f"record {place} is damaged"]
        if not holds or canon.digest(record.line.encode()) != record.hash:
            return found, [*wrong, f"record {place} is not the one that was written"]
        if not approval.is_signed(key, record.signature, record.hash.encode()):
            wrong.append(f"record {place} is not signed with this key")
        elif what == "merge" and isinstance(body, Mapping):
            found.append(body)
        previous = record.hash
    return found, wrong


def _unsigned(versions: Iterable[Version], merges: list[Mapping[str, Any]]) -> Iterator[str]:
    """Versions that say of a merge what no signed record says."""
    for one in versions:
        if one.merge is None:
            continue
        merge = {name: value for name, value in one.merge.items() if name not in ("record", "record_hash")}
        if merge not in merges:
            yield f"version {one.number} names a merge that no record has"
        elif merge.get("after") != canon.digest(one.text.encode()):
            yield f"version {one.number} has another text than the one that was merged"


def _version(row: Mapping[str, Any], number: int) -> Version:
    at, merge = row["at"], row["merge"]
    if row["version"] != number or type(at) is not int or not isinstance(merge, Mapping | None):
        raise ValueError
    return Version(number, _text(row["text"]), _text(row["by"]), at, _text(row["why"]), merge)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _line(row: Mapping[str, Any]) -> str:
    return json.dumps(row, ensure_ascii=False)


def _no_history(why: str, number: int) -> OuterError:
    return OuterError(
        "outer.history",
        f"this is not a history of a spec: {why} (line {number})",
        "download it on the page Blame of the spec",
    )
