"""Each row without its mean, divided by its standard deviation, scaled and shifted by column."""

import numpy as np

WIDTH = 768

prototype = "void layernorm(long n, const float *x, const float *w, const float *b, float *y)"
sizes = {"least": 1, "most": 512, "timed": 256}
kinds = ["normal", "shifted", "small"]
# Means of 768 numbers, one after the other in float32, when shifted: 2e-5 seen. bf16 inputs give 5e-2.
tolerance = {"abs": 1e-4, "rel": 1e-5}


def shapes(n):
    return {"x": (n, WIDTH), "w": (WIDTH,), "b": (WIDTH,), "y": (n, WIDTH)}


def flops(n):
    return 7 * n * WIDTH


def inputs(random, n, kind):
    x = random.standard_normal((n, WIDTH), dtype=np.float32)
    if kind == "shifted":
        x += np.float32(16)
    elif kind == "small":
        x *= np.float32(0.05)
    w = random.uniform(0.5, 1.5, size=WIDTH).astype(np.float32)
    return {"x": x, "w": w, "b": random.standard_normal(WIDTH, dtype=np.float32)}


def reference(n, x, w, b):
    x = x.astype(np.float64)
    off = x - x.mean(axis=1, keepdims=True)
    return off / np.sqrt((off * off).mean(axis=1, keepdims=True) + 1e-5) * w + b
