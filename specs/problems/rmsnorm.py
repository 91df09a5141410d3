"""Each row divided by its root mean square and scaled by weights: y = x / sqrt(mean(x^2) + 1e-5) * w."""

import numpy as np

WIDTH = 768

prototype = "void rmsnorm(long n, const float *x, const float *w, float *y)"
sizes = {"least": 1, "most": 512, "timed": 256}
kinds = ["normal", "large", "small", "zeros"]
# A plain float32 sum of 768 squares is off by 1e-6 of the result; bf16 by 4e-3.
tolerance = {"abs": 1e-6, "rel": 1e-5}


def shapes(n):
    return {"x": (n, WIDTH), "w": (WIDTH,), "y": (n, WIDTH)}


def flops(n):
    return 4 * n * WIDTH


def inputs(random, n, kind):
    x = random.standard_normal((n, WIDTH), dtype=np.float32)
    scale = {"normal": 1.0, "large": 1e6, "small": 1e-4, "zeros": 0.0}[kind]
    w = random.uniform(0.5, 1.5, size=WIDTH).astype(np.float32)
    return {"x": x * np.float32(scale), "w": w}


def reference(n, x, w):
    x = x.astype(np.float64)
    return x / np.sqrt((x * x).mean(axis=1, keepdims=True) + 1e-5) * w
