"""Memory that parent and candidates share: arenas of inputs, and of outputs and scratch.

The parent maps both for writing. The candidate gets the inputs through a descriptor that was reopened for
reading, of a file sealed against any further writable mapping, so that neither a store nor `mprotect` nor a
second `open` changes them. The output is a file of its own: what a candidate may write holds nothing that it
could want to read. Both are sealed against shrinking, or a truncated file would end the parent.

Placement is drawn for every call over the whole arena, in steps of 64 bytes: it keeps a candidate from
knowing a pointer, and it removes a bias of the placement that repeats in one process do not average out.
"""

from __future__ import annotations

import fcntl
import mmap
import os
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

ARENA_BYTES = 8 << 20
"""The least size; `size_for` gives what larger problems need."""
LINE = 64
_ONES = memoryview(b"\xff" * (1 << 20))
_SEAL_FUTURE_WRITE = 0x10
_F_ADD_SEALS = 1033
_SHAPE_SEALS = 0x1 | 0x2 | 0x4  # no more seals, no shrinking, no growing


class Arena:
    """A shared area, every bit set (NaN as floats): `bytes` to write here, `fd` to pass on."""

    def __init__(self, size: int = ARENA_BYTES, *, sealed: bool) -> None:
        import numpy as np

        fd = os.memfd_create("arena", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        try:
            left = size  # written, not stored: the kernel neither clears pages nor takes a fault for each
            while left:
                left -= os.write(fd, _ONES[:left])
            mapped = mmap.mmap(fd, size, flags=mmap.MAP_SHARED | mmap.MAP_POPULATE)  # all of it gets used
            self.bytes: NDArray[np.uint8] = np.frombuffer(mapped, dtype=np.uint8)
            self.size = size
            fcntl.fcntl(fd, _F_ADD_SEALS, _SHAPE_SEALS | (_SEAL_FUTURE_WRITE if sealed else 0))
            self.fd = os.open(f"/proc/self/fd/{fd}", os.O_RDONLY | os.O_CLOEXEC) if sealed else os.dup(fd)
        finally:
            os.close(fd)

    def close(self) -> None:
        """Close the descriptor; the mapping goes with the last view of it."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1


def size_for(sizes: Iterable[int]) -> int:
    """Bytes of an arena in which blocks of these sizes have room to move: a power of two."""
    wanted = sum(sizes) * 3 // 2
    return max(ARENA_BYTES, 1 << (wanted - 1).bit_length()) if wanted else ARENA_BYTES


def places(
    random: np.random.Generator, sizes: list[int], arena: int = ARENA_BYTES, edge: bool = False
) -> list[int]:
    """Byte offsets for blocks of these sizes: disjoint, aligned, anywhere in an arena, in any order.

    With `edge` the first begins where the arena does and the last ends where it does, up to its alignment; a
    single block does one of both.
    """
    lines = [-(-size // LINE) for size in sizes]
    free = arena // LINE - sum(lines)
    order = random.permutation(len(sizes))
    gaps = sorted(int(gap) for gap in random.integers(0, free + 1, size=len(sizes)))
    if edge:
        gaps[0] = 0
        if len(gaps) > 1 or random.integers(2):
            gaps[-1] = free
    offsets = [0] * len(sizes)
    taken = 0
    for gap, index in zip(gaps, order, strict=True):
        offsets[index] = (gap + taken) * LINE
        taken += lines[index]
    return offsets
