"""Spaces of kernels whose points were all measured: the file that holds one, and the measuring.

cache     the file: header, rows, reading, writing, and whether it still fits its problem
measure   measures every point of a space into a cache, and continues where an earlier process stopped

Strategies are compared on such files by bench/space_replay.py: what one proposes is looked up.
"""

from spak.spaces.cache import Cache, Header, Row, read, write

__all__ = ["Cache", "Header", "Row", "read", "write"]
