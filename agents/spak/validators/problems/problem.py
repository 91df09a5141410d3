"""What a problem gives to the profiler: cases with references, a plan of them, tolerance and FLOP count."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Case:
    """One call's inputs, and what it must give."""

    n: int
    kind: str
    inputs: tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.float32]]
    reference: NDArray[np.float64]


class Problem(Protocol):
    """A function that candidates compute: its symbol, its cases, its tolerance."""

    name: str
    symbol: str
    tolerance: float

    def flops(self, n: int) -> int:
        """Operations that no correct answer of this size goes without."""

    def plan(self, random: np.random.Generator, n: int) -> list[tuple[int, str]]:
        """Sizes and kinds of input of the correctness phase around the size to be timed, shuffled."""

    def case(self, random: np.random.Generator, n: int, kind: str = "normal") -> Case:
        """Fresh inputs of a size and kind, with their reference in float64."""
