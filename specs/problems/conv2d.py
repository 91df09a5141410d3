"""A 3 x 3 convolution (correlation) of an n x n image with 4 channels into 4, zeros outside the image.

y[o][i][j] is the sum over channels c and taps (p, q) of w[o][c][p][q] * x[c][i + p - 1][j + q - 1].
"""

import numpy as np

CHANNELS = 4

prototype = "void conv2d(long n, const float *x, const float *w, float *y)"
sizes = {"least": 1, "most": 192, "timed": 96}
kinds = ["normal", "whole", "point"]
# Sums of 36 products of about 1 in float32: 9e-6 seen. bf16 inputs give 2e-2.
tolerance = {"abs": 3e-5, "rel": 2e-6}


def shapes(n):
    return {"x": (CHANNELS, n, n), "w": (CHANNELS, CHANNELS, 3, 3), "y": (CHANNELS, n, n)}


def flops(n):
    return 2 * 9 * CHANNELS * CHANNELS * max(n - 2, 1) ** 2


def inputs(random, n, kind):
    x = random.standard_normal((CHANNELS, n, n), dtype=np.float32)
    w = random.standard_normal((CHANNELS, CHANNELS, 3, 3), dtype=np.float32)
    if kind == "whole":
        x, w = np.rint(x * np.float32(4)), np.rint(w * np.float32(4))
    elif kind == "point":
        x[:] = 0
        x[:, random.integers(n), random.integers(n)] = 1
    return {"x": x.astype(np.float32), "w": w.astype(np.float32)}


def reference(n, x, w):
    around = np.pad(x.astype(np.float64), ((0, 0), (1, 1), (1, 1)))
    out = np.zeros((CHANNELS, n, n))
    for p in range(3):
        for q in range(3):
            out += np.tensordot(w[:, :, p, q].astype(np.float64), around[:, p : p + n, q : q + n], axes=1)
    return out
