"""C = A B with square matrices of n x n, row-major."""

import numpy as np

prototype = "void gemm(long n, const float *A, const float *B, float *C)"
sizes = {"least": 1, "most": 288, "timed": 192}
kinds = ["normal", "whole", "identity"]
# Sums of 288 products of about 1, one after the other in float32: 4e-5 seen. bf16 inputs give 5e-2.
tolerance = {"abs": 1e-4, "rel": 2e-6}


def shapes(n):
    return {"A": (n, n), "B": (n, n), "C": (n, n)}


def flops(n):
    return 2 * n * n * n


def inputs(random, n, kind):
    a, b = (random.standard_normal((n, n), dtype=np.float32) for _ in range(2))
    if kind == "whole":
        a, b = np.rint(a * np.float32(4)), np.rint(b * np.float32(4))
    elif kind == "identity":
        a = np.eye(n, dtype=np.float32)
    return {"A": a.astype(np.float32), "B": b.astype(np.float32)}


def reference(n, A, B):
    return A.astype(np.float64) @ B.astype(np.float64)
