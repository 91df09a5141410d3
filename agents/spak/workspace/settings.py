"""The table `[workspace]` of spak.toml: what a copy holds, and how much a workspace and its store may hold.

Takes the values, whose types and ranges `spak.config` has judged; gives a `Wanted`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from spak.workspace.brought import WAIT_S, Wanted
from spak.workspace.tree import Bounds

KEYS: Mapping[str, type | tuple[type, ...]] = {
    "bring": list,
    "readonly": list,
    "only": list,
    "scratch": list,
    "size_mib": int,
    "files": int,
    "store_mib": int,
    "wait_s": (int, float),
}
RANGES: Mapping[str, tuple[float, float]] = {
    "size_mib": (1, 1 << 24),
    "files": (1, 1 << 24),
    "store_mib": (1, 1 << 24),
    "wait_s": (0, 3600),
}
_MIB_BITS = 20


def read(values: Mapping[str, Any], home: str) -> Wanted:
    """Raises: UsageError `usage.config` for a path that leads elsewhere. `home` is the user's folder."""
    lists = {key: tuple(values[key]) for key in values if KEYS[key] is list}
    usual = Bounds()
    bounds = Bounds(
        entries=values.get("files", usual.entries),
        size_bytes=values.get("size_mib", usual.size_bytes >> _MIB_BITS) << _MIB_BITS,
        store_bytes=values.get("store_mib", usual.store_bytes >> _MIB_BITS) << _MIB_BITS,
    )
    return Wanted(**lists, home=home, bounds=bounds, wait_s=float(values.get("wait_s", WAIT_S)))
