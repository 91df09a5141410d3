"""The sum and the largest of n * 1024 numbers, in float64 and float32."""

import numpy as np

BLOCK = 1024

prototype = "void reduction(long n, const float *x, double *sum, float *max)"
sizes = {"least": 1, "most": 512, "timed": 256}
kinds = ["normal", "positive", "cancelling"]
# The sum of half a million numbers, added in float64; in float32 it would be off by 1e-5 of itself and more.
tolerance = {"abs": 1e-7, "rel": 1e-11}


def shapes(n):
    return {"x": (n, BLOCK), "sum": (1,), "max": (1,)}


def flops(n):
    return n * BLOCK


def inputs(random, n, kind):
    x = random.standard_normal((n, BLOCK), dtype=np.float32)
    if kind == "positive":
        x = np.abs(x)
    elif kind == "cancelling":
        x[:, 1::2] = -x[:, ::2]
    return {"x": x}


def reference(n, x):
    wide = x.astype(np.float64)
    return {"sum": np.array([wide.sum()]), "max": np.array([wide.max()])}
