"""The incomplete beta function and its inverse: the tails of binomial and t distributions."""

from __future__ import annotations

from math import exp, lgamma, log, log1p

_TINY = 1e-300


def below(x: float, a: float, b: float) -> float:
    """The chance that a beta variable with parameters a and b is at most x. Source: Lentz's evaluation of the
    continued fraction 26.5.8 of Abramowitz and Stegun."""
    if x <= 0 or x >= 1:
        return float(x >= 1)
    if x > (a + 1) / (a + b + 2):  # there the fraction converges slowly, and that of the other tail fast
        return 1 - below(1 - x, b, a)
    d = 1 / _apart(1 - (a + b) * x / (a + 1))
    c, fraction = 1.0, d
    for m in range(1, 100_000):
        for step in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d = 1 / _apart(1 + step * d)
            c = _apart(1 + step / c)
            fraction *= c * d
        if abs(c * d - 1) < 1e-14:
            break
    front = lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log1p(-x)
    return exp(front) * fraction / a


def quantile(p: float, a: float, b: float) -> float:
    """The x with `below(x, a, b) == p`, by bisection."""
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if below(middle, a, b) < p else (low, middle)
    return (low + high) / 2


def _apart(value: float) -> float:
    return value if abs(value) > _TINY else _TINY
