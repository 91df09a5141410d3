"""The system call filter: a list in `sandbox/seccomp/<architecture>.toml` to classic BPF bytes.

The program is assembled by hand, so that no library is needed where it runs. It reads the architecture word
first and kills a foreign one (a 32-bit program has other numbers for the same calls), then refuses numbers
that the list does not know, then compares. A filter sees arguments, never the memory that they point to;
calls whose meaning is behind a pointer are therefore refused whole or said to be absent (clone3).
"""

from __future__ import annotations

import struct
import tomllib
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from spak import data

Instruction = tuple[int, int, int, int]
"""Code, jump if true, jump if false, constant."""

_LOAD, _EQUAL, _GREATER, _BITS, _RETURN = 0x20, 0x15, 0x25, 0x45, 0x06
_NUMBER, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16
_KILL, _ERRNO, _ALLOW = 0x80000000, 0x00050000, 0x7FFF0000
_EPERM, _ENOSYS = 1, 38


@lru_cache
def program(machine: str) -> bytes:
    """The filter for `x86_64` or `aarch64`, ready for a `--seccomp` descriptor.

    Raises: BugError `bug.data` when no list ships for the machine.
    """
    text = data.path(f"sandbox/seccomp/{machine}.toml").read_text()
    return b"".join(struct.pack("=HBBI", *line) for line in assemble(tomllib.loads(text)))


def assemble(table: Mapping[str, Any]) -> list[Instruction]:
    """The list as instructions, in the order that its head describes."""
    lines: list[Instruction] = [
        (_LOAD, 0, 0, _ARCHITECTURE),
        (_EQUAL, 1, 0, table["architecture"]),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, _NUMBER),
        (_GREATER, 0, 1, table["last"]),
        (_RETURN, 0, 0, _ERRNO | _ENOSYS),
    ]
    for rule in table["argument"]:
        body = list(_argument(rule))
        lines += [(_EQUAL, 0, len(body), rule["number"]), *body]
    for number in table["refused"].values():
        lines += [(_EQUAL, 0, 1, number), (_RETURN, 0, 0, _ERRNO | _EPERM)]
    for number in table["absent"].values():
        lines += [(_EQUAL, 0, 1, number), (_RETURN, 0, 0, _ERRNO | _ENOSYS)]
    lines.append((_RETURN, 0, 0, _ALLOW))
    return lines


def _argument(rule: Mapping[str, Any]) -> Iterator[Instruction]:
    """Compare the low word of one argument; every path returns, so nothing falls through to the next rule.

    The low word is enough: the kernel takes these arguments as 32-bit values. `when` names bits of another
    argument without which the call passes.
    """
    refuse: Instruction = (_RETURN, 0, 0, _ERRNO | rule["errno"])
    allow: Instruction = (_RETURN, 0, 0, _ALLOW)
    if "when" in rule:
        yield (_LOAD, 0, 0, _ARGUMENTS + 8 * rule["when"]["index"])
        yield from ((_BITS, 1, 0, rule["when"]["any_bits"]), allow)
    yield (_LOAD, 0, 0, _ARGUMENTS + 8 * rule["index"])
    if "any_bits" in rule:
        yield from ((_BITS, 0, 1, rule["any_bits"]), refuse, allow)
    elif "any_of" in rule:
        for value in rule["any_of"]:
            yield from ((_EQUAL, 0, 1, value), refuse)
        yield allow
    else:
        for value in rule["none_of"]:
            yield from ((_EQUAL, 0, 1, value), allow)
        yield refuse
