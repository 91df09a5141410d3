"""Dot products of quantised rows: y[i] is the sum over 1024 columns of w[i][j] * x[j], in int32."""

import numpy as np

WIDTH = 1024

prototype = "void dot_int8(long n, const int8_t *w, const int8_t *x, int32_t *y)"
sizes = {"least": 1, "most": 2048, "timed": 1024}
kinds = ["even", "extreme", "zeros"]
tolerance = {}


def shapes(n):
    return {"w": (n, WIDTH), "x": (WIDTH,), "y": (n,)}


def flops(n):
    return 2 * n * WIDTH


def inputs(random, n, kind):
    w = random.integers(-128, 128, size=(n, WIDTH), dtype=np.int8)
    x = random.integers(-128, 128, size=WIDTH, dtype=np.int8)
    if kind == "extreme":  # a sum in 16 bits, or of saturated pairs, is wrong
        w[:] = -128
        x[:] = -128
    elif kind == "zeros":
        x[:] = 0
    return {"w": w, "x": x}


def reference(n, w, x):
    return w.astype(np.int64) @ x.astype(np.int64)
