"""How many items a question needs, and the smallest p-value a design can reach at all."""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import TYPE_CHECKING, Literal

from anima.checks import require_choice, require_fraction, require_int, require_number
from anima.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable

    from anima.stats.weighted import CorrelationMethod

_MAX_N = 10_000_000


def n_for_correlation(
    rho: float, *, null: float = 0.0, power: float = 0.8, alpha: float = 0.05, method: CorrelationMethod = "spearman"
) -> int:
    """Return the number of pairs to tell a correlation ``rho`` from ``null``, two-sided, on Fisher's z.

    Examples
    --------
    >>> n_for_correlation(0.4, method="pearson")
    47
    """
    require_choice(method, "method", ("pearson", "spearman", "kendall"))
    for label, value in (("rho", rho), ("null", null)):
        require_number(value, label, low=-1, high=1, open_low=True, open_high=True)
    if rho == null:
        raise InputError(f"rho equals null ({rho}): no number of pairs tells them apart")
    z = _two_quantiles(power, alpha)
    return math.ceil(_z_variance(rho, method) * (z / (math.atanh(rho) - math.atanh(null))) ** 2) + _lost(method)


def n_for_correlation_width(
    rho: float, half_width: float, *, level: float = 0.95, method: CorrelationMethod = "spearman"
) -> int:
    """Return the number of pairs for an analytic interval no wider than twice ``half_width``."""
    require_choice(method, "method", ("pearson", "spearman", "kendall"))
    require_number(rho, "rho", low=-1, high=1, open_low=True, open_high=True)
    require_number(half_width, "half_width", low=0, high=1, open_low=True)
    quantile, centre = _quantile(level), math.atanh(rho)

    def wide(n: int) -> bool:
        half = quantile * math.sqrt(_z_variance(rho, method) / (n - _lost(method)))
        return math.tanh(centre + half) - math.tanh(centre - half) > 2 * half_width

    return _first(lambda n: not wide(n), _lost(method) + 1)


def n_for_kappa_width(kappa: float, half_width: float, *, prevalence: float = 0.5, level: float = 0.95) -> int:
    """Return the number of items for an interval of binary kappa no wider than twice ``half_width``.

    Large-sample variance with common base rate ``prevalence`` (Donner and Eliasziw 1992, eq. 3).
    """
    _check_kappa(kappa, prevalence)
    require_number(half_width, "half_width", low=0, high=1, open_low=True)
    quantile = _quantile(level)
    return max(2, math.ceil(_kappa_variance(kappa, prevalence) * (quantile / half_width) ** 2))


def n_for_kappa(
    kappa: float, *, null: float = 0.0, prevalence: float = 0.5, power: float = 0.8, alpha: float = 0.05
) -> int:
    """Return the number of items to tell a binary kappa from ``null``, two-sided (Donner and Eliasziw 1992)."""
    _check_kappa(kappa, prevalence)
    _check_kappa(null, prevalence)
    if kappa == null:
        raise InputError(f"kappa equals null ({kappa}): no number of items tells them apart")
    # Chi-square per item of the three cells (both, split, neither) under the null.
    pq = prevalence * (1 - prevalence)
    cells = [(prevalence**2, 1), (2 * pq, -2), ((1 - prevalence) ** 2, 1)]
    effect = 0.0
    for base, sign in cells:
        under = (base + null * pq) if sign == 1 else 2 * pq * (1 - null)
        truth = (base + kappa * pq) if sign == 1 else 2 * pq * (1 - kappa)
        effect += (truth - under) ** 2 / under if under > 0 else math.inf
    return max(2, math.ceil(_two_quantiles(power, alpha) ** 2 / effect))


def n_for_proportion_width(share: float, half_width: float, *, level: float = 0.95) -> int:
    """Return the number of items for a Wilson interval no wider than twice ``half_width``."""
    require_number(share, "share", low=0, high=1)
    require_number(half_width, "half_width", low=0, high=0.5, open_low=True)
    z = _quantile(level)

    def half(n: int) -> float:
        return z * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n)) / (1 + z * z / n)

    return _first(lambda n: half(n) <= half_width, 1)


def minimum_p(test: Literal["pairing", "groups", "signs", "permutations"], n: int, m: int | None = None) -> float:
    """Return the smallest two-sided p-value that a rank or permutation test can give, whatever the data.

    ``"pairing"``: correlation of n pairs, 2/n!; ``"groups"``: n against m values (Mann–Whitney), 2/C(n+m, n);
    ``"signs"``: n paired differences (sign or signed-rank test), 2/2^n; ``"permutations"``: n random orders, 1/(n+1).

    Examples
    --------
    >>> minimum_p("groups", 3, 3)
    0.1
    """
    require_choice(test, "test", ("pairing", "groups", "signs", "permutations"))
    require_int(n, "n", low=1)
    if test == "groups":
        if m is None:
            raise InputError("minimum_p('groups', n, m) needs the size m of the second group")
        return min(1.0, 2 / math.comb(n + require_int(m, "m", low=1), n))
    if test == "pairing":
        return min(1.0, 2 / math.factorial(n)) if n < 170 else 0.0
    return min(1.0, 2 / 2**n) if test == "signs" else 1 / (n + 1)


def _quantile(level: float) -> float:
    return NormalDist().inv_cdf((1 + require_fraction(level)) / 2)


def _two_quantiles(power: float, alpha: float) -> float:
    require_fraction(power, "power")
    require_fraction(alpha, "alpha")
    normal = NormalDist()
    return normal.inv_cdf(1 - alpha / 2) + normal.inv_cdf(power)


def _z_variance(rho: float, method: CorrelationMethod) -> float:
    return {"pearson": 1.0, "spearman": 1 + rho**2 / 2, "kendall": 0.437}[method]


def _lost(method: CorrelationMethod) -> int:
    return 4 if method == "kendall" else 3


def _check_kappa(kappa: float, prevalence: float) -> None:
    require_fraction(prevalence, "prevalence")
    lowest = max(-prevalence / (1 - prevalence), -(1 - prevalence) / prevalence)
    require_number(kappa, "kappa", low=lowest, high=1, open_high=True)


def _kappa_variance(kappa: float, prevalence: float) -> float:
    pq = prevalence * (1 - prevalence)
    return (1 - kappa) * ((1 - kappa) * (1 - 2 * kappa) + kappa * (2 - kappa) / (2 * pq))


def _first(enough: Callable[[int], bool], low: int) -> int:
    """Return the smallest n for which a monotone condition holds."""
    high = low
    while not enough(high):
        low, high = high + 1, high * 2
        if high > _MAX_N:
            raise InputError(f"more than {_MAX_N} items would be needed: ask for a wider interval")
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle + 1, high)
    return low
