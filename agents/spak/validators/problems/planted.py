"""Answers that are wrong in a known way: what a problem's tolerance has to find.

Takes a case and an earlier one of the same size and kind; gives wrong answers as kernels would leave them.
`passing` says which of them a problem takes for right in every case that was tried: one is found as soon as
one case finds it, as in the correctness phase. Nothing is compiled or timed here.

Source: notes on engineering tasks (hacks of generated kernels).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from spak.validators.problems.problem import Case, Tolerance
from spak.validators.problems.prototype import Prototype

if TYPE_CHECKING:
    from numpy.typing import NDArray

Outputs = Mapping[str, "NDArray[Any]"]
Spoil = Callable[["NDArray[Any]", Case, Case, str], "NDArray[Any] | None"]


def right(case: Case, prototype: Prototype) -> Outputs:
    """The reference in the types of the prototype."""
    return {item.name: case.outputs[item.name].astype(item.type) for item in prototype.of("output")}


def _zeros(truth: NDArray[Any], case: Case, before: Case, name: str) -> NDArray[Any]:
    return truth * 0


def _constant(truth: NDArray[Any], case: Case, before: Case, name: str) -> NDArray[Any]:
    import numpy as np

    return np.full_like(truth, truth.reshape(-1)[0])


def _earlier(truth: NDArray[Any], case: Case, before: Case, name: str) -> NDArray[Any]:
    return before.outputs[name].astype(truth.dtype)


def _copied(truth: NDArray[Any], case: Case, before: Case, name: str) -> NDArray[Any] | None:
    import numpy as np

    for given in case.inputs.values():
        if np.isfinite(given).all():
            return np.resize(given, truth.shape).astype(truth.dtype)
    return None


def _shifted(truth: NDArray[Any], case: Case, before: Case, name: str) -> NDArray[Any] | None:
    import numpy as np

    return np.roll(truth.reshape(-1), 1).reshape(truth.shape) if truth.size > 1 else None


def _last(truth: NDArray[Any], case: Case, before: Case, name: str) -> NDArray[Any]:
    found = truth.copy()
    found.reshape(-1)[-1] = 0
    return found


def _last_part(truth: NDArray[Any], case: Case, before: Case, name: str) -> NDArray[Any] | None:
    found = truth.copy()
    flat = found.reshape(-1)
    flat[flat.size - flat.size // 8 :] = 0
    return found if flat.size >= 8 else None


def _scaled(by: float) -> Spoil:
    def scaled(truth: NDArray[Any], case: Case, before: Case, name: str) -> NDArray[Any]:
        return (truth * by).astype(truth.dtype)

    return scaled


def _one_off(truth: NDArray[Any], case: Case, before: Case, name: str) -> NDArray[Any]:
    import numpy as np

    found = truth.copy()
    flat = found.reshape(-1)
    flat[flat.size // 2] += np.abs(flat).max() / 10 if truth.dtype.kind == "f" else 1
    return found


def _bf16(truth: NDArray[Any], case: Case, before: Case, name: str) -> NDArray[Any] | None:
    import numpy as np

    if truth.dtype.kind != "f":
        return None
    return (truth.astype(np.float32).view(np.uint32) & 0xFFFF0000).view(np.float32).astype(truth.dtype)


WRONG: Mapping[str, Spoil] = {
    "writes zeros": _zeros,
    "writes one constant": _constant,
    "gives the answer of an earlier call": _earlier,
    "copies an input": _copied,
    "is one place off": _shifted,
    "leaves the last number out": _last,
    "leaves the last eighth out": _last_part,
    "is off by a tenth": _scaled(1.1),
    "is off by a tenth in one number": _one_off,
}
"""No tolerance may take these for right."""
ROUGH: Mapping[str, Spoil] = {
    "is off by a hundredth": _scaled(1.01),
    "is off by a thousandth": _scaled(1.001),
    "is cut to bfloat16": _bf16,
}
"""These may be meant: a low precision that is good enough."""


def passing(
    kinds: Mapping[str, Spoil],
    cases: Sequence[tuple[Case, Case]],
    prototype: Prototype,
    tolerance: Tolerance,
) -> Iterator[tuple[str, str]]:
    """(what it does, which output) of each wrong answer that no case finds; cases as (case, earlier one)."""
    for item in prototype.of("output"):
        for what, spoil in kinds.items():
            tried = False
            for case, before in cases:
                truth = case.outputs[item.name].astype(item.type)
                wrong = spoil(truth, case, before, item.name)
                if wrong is None or (wrong == truth).all():
                    continue  # no such answer, or here it is the right one
                tried = True
                if tolerance.errors(wrong, case.outputs[item.name])[1].any():
                    break
            else:
                if tried or what == "gives the answer of an earlier call":
                    yield what, item.name
