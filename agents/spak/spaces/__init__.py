"""Spaces of kernels whose points were all measured: the file that holds one, and the measuring.

cache     the file: header, rows, reading, writing, and whether it still fits its problem
measure   measures every point of a space into a cache, and continues where an earlier process stopped

A search can be replayed on a cache: what a strategy proposes is looked up instead of compiled and timed.
"""

from spak.spaces.cache import Cache, Header, Row, read, stale, write

__all__ = ["Cache", "Header", "Row", "read", "stale", "write"]
