"""softmax(Q K^T / 8) V for one head of width 64, row-major n x 64.

There is no mask argument: a key is masked by `K[j][7] = -inf` while all of `Q[:, 7]` is positive, so that its
logit is -inf for every row; the reference leaves such keys out, because float64 would make NaN of inf - inf.
At least one key stays: a row of nothing but -inf is undefined and is not asked.

Kinds of input:
    normal      standard normal numbers
    huge        small integers times powers of two: every fp32 dot product is exact in any order, logits reach
                10^7, and no two of a row are nearer than 128, so that one tolerance holds for all kinds
    zeros       Q and K are zero: the answer is the mean of V
    first, last three quarters of the keys masked, from the front or from the back
    one         all keys but one masked
    half        a random half of the keys masked
"""

import numpy as np

WIDTH = 64
MASK_COLUMN = 7

prototype = "void attn(long n, const float *Q, const float *K, const float *V, float *O, float *scratch)"
sizes = {"least": 1, "most": 1024, "timed": 512}
kinds = ["normal", "huge", "zeros", "first", "last", "one", "half"]
# Worst honest error seen 1.8e-6; values of V cut to bf16 give 3.8e-3.
tolerance = {"abs": 4e-6}


def shapes(n):
    rows = (n, WIDTH)
    return {"Q": rows, "K": rows, "V": rows, "O": rows, "scratch": (1 << 20,)}


def flops(n):
    return 4 * n * n * WIDTH


def inputs(random, n, kind):
    q, k, v = (random.standard_normal((n, WIDTH), dtype=np.float32) for _ in range(3))
    if kind == "huge":
        q, k = huge(random, n)
    elif kind == "zeros":
        q, k = np.zeros_like(q), np.zeros_like(k)
    elif kind != "normal":
        q[:, MASK_COLUMN] = np.abs(q[:, MASK_COLUMN]) + np.float32(0.125)
        k[~kept(random, n, kind), MASK_COLUMN] = -np.inf
    return {"Q": q, "K": k, "V": v}


def reference(n, Q, K, V):
    seen = ~np.isneginf(K[:, MASK_COLUMN])
    logits = Q.astype(np.float64) @ K[seen].astype(np.float64).T
    logits *= 0.125
    logits -= logits.max(axis=1, keepdims=True)
    np.exp(logits, out=logits)
    out = logits @ V[seen].astype(np.float64)
    out /= logits.sum(axis=1, keepdims=True)
    return out


def kept(random, n, kind):
    """Which keys are not masked."""
    found = np.zeros(n, dtype=bool)
    if kind == "first":
        found[3 * n // 4 :] = True
    elif kind == "last":
        found[: max(n // 4, 1)] = True
    elif kind == "half":
        found[random.permutation(n)[: max(n // 2, 1)]] = True
    else:
        found[random.integers(n)] = True
    return found


def huge(random, n):
    """Q and K whose logits are 128 * (a rank of the key + 1024 * an integer): apart by 128 within a row.

    Two columns carry the rank (`32 * high + low`), the others small integers. Where several keys share the
    integer the rank decides, so that the answer is a row of V for each row of Q, whatever the rounding of a
    scale that is folded into Q or K.
    """
    rank = random.permutation(n)
    q = random.integers(-3, 4, size=(n, WIDTH)).astype(np.float32) * np.float32(1024)
    k = random.integers(-3, 4, size=(n, WIDTH)).astype(np.float32)
    sign = random.choice([-1.0, 1.0], size=n).astype(np.float32)
    q[:, 0], k[:, 0] = 32 * sign, (rank // 32).astype(np.float32)
    q[:, 1], k[:, 1] = sign, (rank % 32).astype(np.float32)
    return q * np.float32(32), k * np.float32(32)
