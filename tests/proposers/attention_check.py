"""Check one compiled attention kernel against a float64 reference; a program, so that a crash is its own.

Takes the path of a shared library; prints the worst error, relative above 1, over sizes and kinds of input,
and exits 1 when it is above the tolerance or anything beyond the output was written.
"""

from __future__ import annotations

import ctypes
import sys

import numpy as np

TOLERANCE = 4e-6
SIZES = (1, 2, 3, 7, 65, 333, 512, 513, 1024)
KINDS = ("normal", "huge", "zeros", "first", "last", "one", "random")
GUARD = 64

Array = np.ndarray[tuple[int, ...], np.dtype[np.float32]]


def aligned(count: int, value: float = 0.0) -> Array:
    """Floats at a 64-byte boundary."""
    room = np.empty(count + 16, np.float32)
    first = (-room.ctypes.data // 4) % 16
    found = room[first : first + count]
    found[:] = value
    return found


def inputs(rng: np.random.Generator, n: int, kind: str) -> tuple[Array, Array, Array]:
    q, k, v = (aligned(n * 64).reshape(n, 64) for _ in range(3))
    v[:] = rng.standard_normal((n, 64))
    if kind == "huge":
        q[:] = rng.integers(-3, 4, (n, 64)) * 16.0
        k[:] = rng.integers(-3, 4, (n, 64)) * 32.0
    elif kind != "zeros":
        q[:] = rng.standard_normal((n, 64))
        k[:] = rng.standard_normal((n, 64))
    if kind in ("first", "last", "one", "random"):
        masked = {
            "first": np.arange(n) < n * 3 // 4,
            "last": np.arange(n) >= n - n * 3 // 4,
            "one": np.ones(n, bool),
            "random": rng.random(n) < 0.5,
        }[kind]
        masked[rng.integers(n) if kind in ("one", "random") else 0 if kind == "last" else n - 1] = False
        q[:, 7] = np.abs(q[:, 7]) + 0.1
        k[masked, 7] = -np.inf
    return q, k, v


def reference(q: Array, k: Array, v: Array) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    keep = ~np.isneginf(k[:, 7])
    logits = q.astype(np.float64) @ k[keep].astype(np.float64).T / 8
    weights = np.exp(logits - logits.max(1, keepdims=True))
    found: np.ndarray[tuple[int, ...], np.dtype[np.float64]] = weights @ v[keep].astype(np.float64)
    return found / weights.sum(1, keepdims=True)


def error(library: ctypes.CDLL, q: Array, k: Array, v: Array, scratch: Array) -> float:
    n = len(q)
    out = aligned(n * 64 + GUARD, np.nan)
    scratch[:] = np.nan
    library.attn(ctypes.c_long(n), *(ctypes.c_void_p(a.ctypes.data) for a in (q, k, v, out, scratch)))
    wanted = reference(q, k, v)
    off = np.abs(out[: n * 64].reshape(n, 64) - wanted) / np.maximum(1.0, np.abs(wanted))
    return float(np.max(off)) if np.isnan(out[n * 64 :]).all() else float("inf")


def main() -> int:
    library = ctypes.CDLL(sys.argv[1])
    rng = np.random.default_rng(int(sys.argv[2]))
    scratch = aligned(1 << 20)
    worst = 0.0
    for n in SIZES:
        for kind in KINDS:
            found = error(library, *inputs(rng, n, kind), scratch)
            if not found <= TOLERANCE:
                print(f"n={n} {kind}: error {found}")
                return 1
            worst = max(worst, found)
    print(worst)
    return 0


if __name__ == "__main__":
    sys.exit(main())
