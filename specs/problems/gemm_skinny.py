"""C = A B with A of n x n and B of n x m for m columns, m from 1 to 8, drawn for each call; row-major.

The arrays have room for 8 columns; what lies beyond the m columns of C has to be zero.
"""

import numpy as np

MOST = 8

prototype = "void gemm_skinny(long n, int m, const float *A, const float *B, float *C)"
sizes = {"least": 1, "most": 512, "timed": 384}
kinds = ["full", "single", "some"]
# Sums of 512 products of about 1, one after the other in float32: 7e-5 seen. bf16 inputs give 5e-2.
tolerance = {"abs": 2e-4, "rel": 2e-6}


def shapes(n):
    return {"A": (n, n), "B": (n, MOST), "C": (n, MOST)}


def flops(n):
    return 2 * n * n  # of one column, which every call has


def inputs(random, n, kind):
    a = random.standard_normal((n, n), dtype=np.float32)
    b = random.standard_normal((n, MOST), dtype=np.float32)
    m = {"full": MOST, "single": 1}.get(kind) or int(random.integers(1, MOST + 1))
    return {"m": m, "A": a, "B": b}


def reference(n, m, A, B):
    out = np.zeros((n, MOST))
    out[:, :m] = A.astype(np.float64) @ B[:, :m].astype(np.float64)
    return out
