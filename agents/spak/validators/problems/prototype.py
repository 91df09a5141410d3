"""A problem's C prototype, read: what a candidate exports and how it is called.

Takes `void NAME(long n, const float *x, float *y)`; gives a Prototype. `const T *` is an input, `T *` an
output, `T *scratch` memory of unknown content, a plain `T` a scalar. Nothing of the text goes to a compiler:
the driver's call is put together from the parameters, in words of ours.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from spak.validators.problems.fault import ProblemFault

MAX_PARAMETERS = 16
TYPES: Mapping[str, tuple[str, str]] = {
    "float": ("float32", "float"),
    "double": ("float64", "double"),
    "int8_t": ("int8", "int8_t"),
    "int16_t": ("int16", "int16_t"),
    "int32_t": ("int32", "int32_t"),
    "int64_t": ("int64", "int64_t"),
    "uint8_t": ("uint8", "uint8_t"),
    "short": ("int16", "short"),
    "int": ("int32", "int"),
    "long": ("int64", "long"),
}
"""A C type to numpy's name of it and the word that the driver is compiled with."""
BYTES = {"float32": 4, "float64": 8, "int8": 1, "uint8": 1, "int16": 2, "int32": 4, "int64": 8}
SCRATCH = "scratch"
Role = Literal["scalar", "input", "output", "scratch"]

_WHOLE = re.compile(r"\s*void\s+([A-Za-z_]\w{0,62})\s*\(([^()]*)\)\s*;?\s*", re.ASCII)
_PART = re.compile(r"(const\s+)?(\w+)\s*(\*)?\s*(?:restrict\s+)?([A-Za-z_]\w{0,62})", re.ASCII)


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter; `type` is numpy's name, `c` the word of C."""

    name: str
    role: Role
    type: str
    c: str

    @property
    def floating(self) -> bool:
        """Whether its numbers can be NaN."""
        return self.type.startswith("float")

    @property
    def width(self) -> int:
        """Bytes of one number."""
        return BYTES[self.type]


@dataclass(frozen=True, slots=True)
class Prototype:
    """The symbol that a candidate exports, and its parameters in order."""

    symbol: str
    parameters: tuple[Parameter, ...]

    def of(self, role: Role) -> tuple[Parameter, ...]:
        """The parameters of a role, in order."""
        return tuple(item for item in self.parameters if item.role == role)

    @property
    def speed(self) -> int:
        """How many times the float32 rate a core may reach at most with the narrowest type: twice what its
        width gives, where whole numbers of one or two bytes have instructions of their own."""
        narrowest = min(item.width for item in self.parameters if item.role in ("input", "output"))
        return {1: 8, 2: 4}.get(narrowest, 1)

    @property
    def text(self) -> str:
        """The prototype in C, in words of ours."""
        shown = []
        for item in self.parameters:
            const = "const " if item.role == "input" else ""
            star = "" if item.role == "scalar" else "*"
            shown.append(f"{const}{item.c} {star}{item.name}")
        return f"void {self.symbol}({', '.join(shown)})"

    def macros(self) -> tuple[str, str, str]:
        """SLOTS, PARAMETERS and ARGUMENTS for sandbox/guest/cpu_driver.c."""
        types, values = [], []
        for index, item in enumerate(self.parameters):
            slot = f"go->slot[{index}]"
            if item.role == "scalar":
                types.append(item.c)
                values.append(f"*(const {item.c} *)&{slot}")
            else:
                types.append(f"{'const ' if item.role == 'input' else ''}{item.c} *")
                values.append(f"({types[-1]})({'in' if item.role == 'input' else 'out'} + {slot})")
        return (
            f"SLOTS={len(self.parameters)}",
            f"PARAMETERS={', '.join(types)}",
            f"ARGUMENTS={', '.join(values)}",
        )

    def slot(self, parameter: Parameter, value: int | float) -> bytes:
        """Eight bytes of a message to the driver: a scalar's value, or a pointer's offset."""
        if parameter.role == "scalar" and parameter.floating:
            return struct.pack("=f4x" if parameter.width == 4 else "=d", value)
        return struct.pack("=q", value)


def parse(text: str) -> Prototype:
    """The prototype of a text. Raises: ProblemFault `problem.prototype`."""
    whole = _WHOLE.fullmatch(text)
    if whole is None or len(text) > 4096:
        raise _refused("it is not of the form void NAME(TYPE NAME, ...)")
    parts = [part.strip() for part in whole[2].split(",")]
    if len(parts) > MAX_PARAMETERS:
        raise _refused(f"it has more than {MAX_PARAMETERS} parameters")
    found = Prototype(whole[1], tuple(_parameter(part) for part in parts))
    names = [item.name for item in found.parameters]
    if len(set(names)) < len(names):
        raise _refused("two parameters have the same name")
    if not found.of("output"):
        raise _refused("it writes nothing: no pointer without const, but scratch")
    return found


def _parameter(text: str) -> Parameter:
    found = _PART.fullmatch(text)
    if found is None or found[2] not in TYPES:
        raise _refused(f"{text!r} is no parameter: the types are {', '.join(TYPES)}, at most one *")
    const, c, star, name = found.groups()
    role: Role = "output" if star else "scalar"
    if star and const:
        role = "input"
    elif star and name == SCRATCH:
        role = "scratch"
    kind, word = TYPES[c]
    return Parameter(name, role, kind, word)


def _refused(detail: str) -> ProblemFault:
    return ProblemFault("problem.prototype", f"prototype: {detail}")
