"""softmax(Q K^T / 8) V for one head of width 64: inputs, reference, FLOP model.

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

from __future__ import annotations

from typing import TYPE_CHECKING

from spak.validators.problems.problem import Case

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

WIDTH = 64
MASK_COLUMN = 7
ODD_KINDS = ("huge", "zeros", "first", "last", "one", "half")
MASKED_KINDS = ("first", "last", "one", "half")
MAX_N = 1024


class Attention:
    """Attention over n rows of WIDTH numbers."""

    name = "attention"
    symbol = "attn"
    tolerance = 4e-6
    """Largest |error| of an output. Worst honest error seen 1.8e-6; values of V cut to bf16 give 3.8e-3."""

    def flops(self, n: int) -> int:
        """Floating-point operations for n rows."""
        return 4 * n * n * WIDTH

    def plan(self, random: np.random.Generator, n: int) -> list[tuple[int, str]]:
        """36 calls: eleven sizes, each normal and one odd kind, then every kind at `n` and at an odd size."""
        sizes = [1, 7, 65, 333, n - 1, n, n + 1, n + n // 4]
        sizes += [int(size) for size in random.integers(2, MAX_N, size=3)]
        sizes = [min(max(size, 1), MAX_N) for size in sizes]
        plan = [(size, "normal") for size in sizes]
        plan += [(size, str(random.choice(ODD_KINDS))) for size in sizes]
        plan += [(size, kind) for size in (n, 333) for kind in ("normal", *ODD_KINDS)]
        return [plan[index] for index in random.permutation(len(plan))]

    def case(self, random: np.random.Generator, n: int, kind: str = "normal") -> Case:
        """Inputs and the expected output for n rows, of a kind that breaks wrong kernels."""
        import numpy as np

        q, k, v = (random.standard_normal((n, WIDTH), dtype=np.float32) for _ in range(3))
        kept = np.ones(n, dtype=bool)
        if kind == "huge":
            q, k = _huge(random, n)
        elif kind == "zeros":
            q, k = np.zeros_like(q), np.zeros_like(k)
        elif kind in MASKED_KINDS:
            kept = _kept(random, n, kind)
            q[:, MASK_COLUMN] = np.abs(q[:, MASK_COLUMN]) + np.float32(0.125)
            k[~kept, MASK_COLUMN] = -np.inf
        return Case(n, kind, (q, k, v), reference(q, k[kept], v[kept]))


def reference(q: NDArray[np.float32], k: NDArray[np.float32], v: NDArray[np.float32]) -> NDArray[np.float64]:
    """The answer in float64. All of k must be finite: masked keys are left out by the caller."""
    import numpy as np

    logits = q.astype(np.float64) @ k.astype(np.float64).T
    logits *= 0.125
    logits -= logits.max(axis=1, keepdims=True)
    np.exp(logits, out=logits)
    out: NDArray[np.float64] = logits @ v.astype(np.float64)
    out /= logits.sum(axis=1, keepdims=True)
    return out


def _kept(random: np.random.Generator, n: int, kind: str) -> NDArray[np.bool_]:
    import numpy as np

    kept = np.zeros(n, dtype=bool)
    if kind == "first":
        kept[3 * n // 4 :] = True
    elif kind == "last":
        kept[: max(n // 4, 1)] = True
    elif kind == "half":
        kept[random.permutation(n)[: max(n // 2, 1)]] = True
    else:
        kept[random.integers(n)] = True
    return kept


def _huge(random: np.random.Generator, n: int) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Q and K whose logits are 128 * (a rank of the key + 1024 * an integer): apart by 128 within a row.

    Two columns carry the rank (`32 * high + low`), the others small integers. Where several keys share the
    integer the rank decides, so that the answer is a row of V for each row of Q, whatever the rounding of a
    scale that is folded into Q or K.
    """
    import numpy as np

    rank = random.permutation(n)
    q = random.integers(-3, 4, size=(n, WIDTH)).astype(np.float32) * np.float32(1024)
    k = random.integers(-3, 4, size=(n, WIDTH)).astype(np.float32)
    sign = random.choice([-1.0, 1.0], size=n).astype(np.float32)
    q[:, 0], k[:, 0] = 32 * sign, (rank // 32).astype(np.float32)
    q[:, 1], k[:, 1] = sign, (rank % 32).astype(np.float32)
    return q * np.float32(32), k * np.float32(32)
