"""One step of the five-point heat equation on an n x n grid; the border keeps its values.

y = x + k * (north + south + west + east - 4 x) inside, with a k between 0.05 and 0.25 drawn for each call.
"""

import numpy as np

prototype = "void stencil(long n, float k, const float *x, float *y)"
sizes = {"least": 1, "most": 768, "timed": 384}
kinds = ["normal", "large", "flat"]
tolerance = {"abs": 2e-6, "rel": 1e-5}


def shapes(n):
    return {"x": (n, n), "y": (n, n)}


def flops(n):
    return 6 * max(n - 2, 0) ** 2


def inputs(random, n, kind):
    x = random.standard_normal((n, n), dtype=np.float32)
    if kind == "large":  # all of one sign: no sum cancels
        x = np.abs(x) * np.float32(1e4)
    elif kind == "flat":
        x[:] = 0.5
    return {"k": float(np.float32(random.uniform(0.05, 0.25))), "x": x.astype(np.float32)}


def reference(n, k, x):
    y = x.astype(np.float64)
    inner = y[1:-1, 1:-1]
    around = y[:-2, 1:-1] + y[2:, 1:-1] + y[1:-1, :-2] + y[1:-1, 2:]
    out = y.copy()
    out[1:-1, 1:-1] = inner + k * (around - 4 * inner)
    return out
