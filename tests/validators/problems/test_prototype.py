"""C prototypes of problems: what is read, what is refused, and the call that is made of one."""

from __future__ import annotations

import struct

import pytest

from spak.validators.problems.fault import ProblemFault
from spak.validators.problems.prototype import parse

MANY = ", ".join(f"long a{index}" for index in range(16))


def test_roles_and_types() -> None:
    found = parse(
        "void f(long n, float k, const int8_t *restrict x, const double* y, int32_t *z, float *scratch);"
    )
    assert [(item.name, item.role, item.type) for item in found.parameters] == [
        ("n", "scalar", "int64"),
        ("k", "scalar", "float32"),
        ("x", "input", "int8"),
        ("y", "input", "float64"),
        ("z", "output", "int32"),
        ("scratch", "scratch", "float32"),
    ]
    assert found.symbol == "f"
    assert found.text == (
        "void f(long n, float k, const int8_t *x, const double *y, int32_t *z, float *scratch)"
    )


def test_the_call_is_of_our_own_words() -> None:
    slots, types, values = parse("void  f ( const float *x, double k,\n float *y )").macros()
    assert slots == "SLOTS=3"
    assert types == "PARAMETERS=const float *, double, float *"
    wanted = "(const float *)(in + go->slot[0]), *(const double *)&go->slot[1], (float *)(out + go->slot[2])"
    assert values == f"ARGUMENTS={wanted}"


def test_slots_hold_scalars_and_offsets() -> None:
    n, k, d, y = parse("void f(int n, float k, double d, float *y)").parameters
    found = parse("void f(int n, float k, double d, float *y)")
    assert found.slot(n, -3) == struct.pack("<q", -3)
    assert found.slot(k, 0.5)[:4] == struct.pack("<f", 0.5) and len(found.slot(k, 0.5)) == 8
    assert found.slot(d, 0.5) == struct.pack("<d", 0.5)
    assert found.slot(y, 4096) == struct.pack("<q", 4096)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "float f(float *y)",
        "void f()",
        "void f(float **y)",
        "void f(char *y)",
        "void f(unsigned long n, float *y)",
        "void f(float y)",
        "void f(const float *x)",
        "void f(float *scratch)",
        "void f(float *y, float *y)",
        "void f(float *y) { system(); }",
        "void f(float *y, void (*g)(int))",
        f"void f({MANY}, float *y)",
        "void f(float y[4])",
        "void f(float *y" + " " * 5000 + ")",
    ],
)
def test_what_is_no_prototype(text: str) -> None:
    with pytest.raises(ProblemFault) as caught:
        parse(text)
    assert caught.value.code == "problem.prototype"
