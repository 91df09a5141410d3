"""Softmax of each row."""

import numpy as np

WIDTH = 1000

prototype = "void softmax(long n, const float *x, float *y)"
sizes = {"least": 1, "most": 384, "timed": 128}
kinds = ["normal", "huge", "equal", "one"]
# Shares of 1. A sum of 1000 of them, one after the other in float32, is off by 5e-6 of itself; bf16 by 4e-3.
tolerance = {"abs": 1e-8, "rel": 2e-5}


def shapes(n):
    return {"x": (n, WIDTH), "y": (n, WIDTH)}


def flops(n):
    return 4 * n * WIDTH


def inputs(random, n, kind):
    x = random.standard_normal((n, WIDTH), dtype=np.float32)
    if (
        kind == "huge"
    ):  # whole numbers, so that differences are exact; exp of them without the maximum overflows
        x = np.rint(x * np.float32(8)) + np.float32(1000)
    elif kind == "equal":
        x[:] = x[:, :1]
    elif kind == "one":
        x[np.arange(n), random.integers(WIDTH, size=n)] = 200
    return {"x": x.astype(np.float32)}


def reference(n, x):
    x = x.astype(np.float64)
    y = np.exp(x - x.max(axis=1, keepdims=True))
    return y / y.sum(axis=1, keepdims=True)
