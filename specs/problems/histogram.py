"""How often each of 256 values is among n * 1024 bytes."""

import numpy as np

BLOCK = 1024

prototype = "void histogram(long n, const uint8_t *x, int32_t *counts)"
sizes = {"least": 1, "most": 1024, "timed": 512}
kinds = ["even", "same", "few", "rising"]
tolerance = {}


def shapes(n):
    return {"x": (n, BLOCK), "counts": (256,)}


def flops(n):
    return n * BLOCK


def inputs(random, n, kind):
    x = random.integers(256, size=(n, BLOCK), dtype=np.uint8)
    if kind == "same":
        x[:] = random.integers(256)
    elif kind == "few":
        x &= 3
    elif kind == "rising":
        x.reshape(-1).sort()
    return {"x": x}


def reference(n, x):
    return np.bincount(x.reshape(-1), minlength=256)
