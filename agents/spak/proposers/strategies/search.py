"""What every strategy is given, and the draws that several of them make."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field

from spak.cancel import Cancel
from spak.proposers.expression import Scalar
from spak.proposers.history import Observation
from spak.proposers.space import Space


@dataclass(frozen=True, slots=True)
class Search:
    """The state of a search, wholly made from the request; nothing outlives the answer."""

    space: Space
    seen: tuple[Observation, ...]
    """Oldest first."""
    pending: tuple[int, ...]
    """Points drawn for the same plan before this one."""
    starts: int
    """Random points before anything clever, at the start and at each restart."""
    patience: int
    """Points without progress before a restart."""
    rng: random.Random = field(compare=False)
    cancel: Cancel | None = field(default=None, compare=False)
    prior: tuple[Observation, ...] = ()
    """What an earlier search saw; its losses may be of another machine or size."""

    def neighbours(self, number: int) -> list[int]:
        """Those of the space. Raises: Cancelled."""
        return self.space.neighbours(number, self.cancel)

    @property
    def tried(self) -> frozenset[int]:
        """The points that were tried or are being tried."""
        return frozenset((*(item.number for item in self.seen), *self.pending))

    def anywhere(self) -> int | None:
        """An untried point drawn evenly; None when the space is used up."""
        return self.space.untried(self.rng, self.tried)

    def counts(self) -> Counter[tuple[str, Scalar]]:
        """How often each choice of each parameter was seen."""
        return Counter(choice for item in self.seen for choice in self.space.point(item.number).items())

    def spread_out(self, draws: int = 8) -> int | None:
        """Of a few untried points the one whose choices were seen least: even coverage with few points."""
        found = [number for number in (self.anywhere() for _ in range(draws)) if number is not None]
        if not found:
            return None
        counts = self.counts()
        return min(
            found,
            key=lambda number: sum(
                counts[choice] * len(self.space.choices[choice[0]])
                for choice in self.space.point(number).items()
            ),
        )
