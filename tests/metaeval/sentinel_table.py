"""False alarms and power of the judge sentinel, by simulation: the settings in one table, the results as a DataFrame.

``sentinel_frame()`` reruns everything (2,000 histories each, about two minutes); the book prints it. Histories of kappa
come from tables of two raters with the same base rate (``prevalence``), n items per snapshot, and carry the interval that
``cohen_kappa`` gives. Every history is looked at after each snapshot; a row says how often there was an alarm, by our rule
and by the reference's, and its Monte-Carlo error. ``promised`` is the share that must not be exceeded (false alarms) or
must be reached (declines); None: shown for comparison.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pandas as pd

from anima.metaeval.sentinel_drift import count_scale, drift_test
from anima.stats.agreement import kappa_intervals, kappa_of_tables, wilson_interval

N_HISTORIES = 2000
N_ITEMS = 200
STEADY = (0.9,) * 30
DECLINE = tuple(np.linspace(0.9, 0.8, 10).tolist())


@dataclass(frozen=True)
class Setting:
    what: str
    truth: tuple[float, ...]
    prevalence: float = 0.5
    metric: str = "calibrationKappa"
    level: float = math.nan  # known baseline
    precision: str = "n and interval"
    horizon: int = 30
    promised: float | None = None
    sd: float = 0.0  # of normal values, in place of counts

    @property
    def stationary(self) -> bool:
        return len(set(self.truth)) == 1


SETTINGS = [
    # promised: at most 5 % false alarms in 30 snapshots
    *[Setting("no change", STEADY, prevalence, promised=0.05) for prevalence in (0.5, 0.8)],
    *[Setting("no change, baseline known", STEADY, prevalence, level=0.9, promised=0.05) for prevalence in (0.5, 0.8)],
    # promised: declines of .90 to .80 in ten snapshots are caught by the tenth
    Setting("decline, baseline known", DECLINE, 0.5, level=0.9, promised=0.95),
    Setting("decline, baseline known", DECLINE, 0.8, level=0.9, promised=0.85),
    Setting("decline after 10 steady snapshots", (0.9,) * 10 + DECLINE, 0.5, promised=0.90),
    Setting("decline after 10 steady snapshots", (0.9,) * 10 + DECLINE, 0.8),
    # other levels, other metric, less said about the precision
    *[Setting("no change", (level,) * 30, prevalence) for level in (0.98, 0.7) for prevalence in (0.5, 0.8)],
    *[Setting("no change", STEADY, prevalence, precision="n only") for prevalence in (0.5, 0.8)],
    Setting("decline after 10 steady snapshots", (0.9,) * 10 + DECLINE, precision="n only"),
    Setting("no change", STEADY, metric="sentinelPassRate", precision="n only"),
    Setting("decline after 10 steady snapshots", (0.9,) * 10 + DECLINE, metric="sentinelPassRate", precision="n only"),
    Setting("no change", (0.7,) * 52, precision="none", sd=0.08, horizon=52),
    Setting("drop to .4 after 26 snapshots", (0.7,) * 26 + (0.4,) * 10, precision="none", sd=0.08, horizon=52),
]


def draw(setting: Setting, rng: np.random.Generator, m: int) -> tuple[np.ndarray, ...]:
    """Return values, sizes, lows and highs ``(m, t)`` of histories."""
    t = len(setting.truth)
    truth = np.broadcast_to(setting.truth, (m, t))
    blank = np.full((m, t), np.nan)
    if setting.sd:
        return rng.normal(truth, setting.sd), blank, blank, blank
    sizes = np.full((m, t), float(N_ITEMS))
    if setting.metric == "sentinelPassRate":
        hits = rng.binomial(N_ITEMS, truth)
        values, (lows, highs) = hits / N_ITEMS, wilson_interval(hits, sizes)
    else:
        p, q = setting.prevalence, 1 - setting.prevalence
        split = p * q * (1 - truth)
        cells = np.stack([p * p + truth * p * q, split, split, q * q + truth * p * q], axis=-1)
        tables = rng.multinomial(N_ITEMS, cells).reshape(-1, 2, 2).astype(float)
        values = kappa_of_tables(tables, np.eye(2)).reshape(m, t)
        lows, highs = (ends.reshape(m, t) for ends in kappa_intervals(tables, np.eye(2)))
    return (values, sizes, blank, blank) if setting.precision == "n only" else (values, sizes, lows, highs)


def alarms(setting: Setting, data: tuple[np.ndarray, ...]) -> np.ndarray:
    """Return whether our rule raises a drift alarm at each look, ``(m, t)``."""
    level = {"level": setting.level, "level_scale": 0.0 if math.isnan(setting.level) else math.inf}
    looks = []
    for t in range(1, data[0].shape[1] + 1):
        values, *rest = (item[:, :t] for item in data)
        scale = count_scale(setting.metric, values, *rest)
        fall, _, limit, _ = drift_test(values, scale, horizon=setting.horizon, **level)
        looks.append(fall > limit)
    return np.stack(looks, axis=1)


def reference_alarms(setting: Setting, values: np.ndarray) -> np.ndarray:
    """Return whether the reference rule alarms at each look: three falling steps and a CV above 5 %, or a drop."""
    drop = 0.1 if setting.metric == "sentinelPassRate" else 0.15
    looks = []
    for t in range(1, values.shape[1] + 1):
        tail = values[:, max(0, t - 5) : t]
        stable = (tail.std(axis=1) <= 0.05 * np.abs(tail.mean(axis=1))) & (t >= 5)
        falling = (np.diff(values[:, t - 4 : t]) < 0).all(axis=1) if t >= 4 else np.zeros(len(values), bool)
        looks.append((falling & ~stable) | (values[:, 0] - values[:, t - 1] > drop))
    return np.stack(looks, axis=1)


def sentinel_frame(histories: int = N_HISTORIES, *, promised_only: bool = False, seed: int = 20240607) -> pd.DataFrame:
    """Return one row per setting: share of histories with an alarm, by our rule and the reference's."""
    rows = []
    for i, setting in enumerate(SETTINGS):
        if promised_only and setting.promised is None:
            continue
        data = draw(setting, np.random.default_rng([seed, i]), histories)
        ours, theirs = (
            float(looks.any(axis=1).mean()) for looks in (alarms(setting, data), reference_alarms(setting, data[0]))
        )
        kept = None
        if setting.promised is not None:
            kept = ours <= setting.promised if setting.stationary else ours >= setting.promised
        rows.append(
            {
                "metric": setting.metric, "what": setting.what, "from": setting.truth[0], "to": setting.truth[-1],
                "snapshots": len(setting.truth), "prevalence": math.nan if setting.sd else setting.prevalence,
                "precision": setting.precision, "wanted": "few" if setting.stationary else "many",
                "promised": math.nan if setting.promised is None else setting.promised, "anima": ours,
                "mc_error": math.sqrt(ours * (1 - ours) / histories), "reference": theirs,
                "histories": histories, "kept": kept,
            }
        )  # fmt: skip
    return pd.DataFrame(rows)


if __name__ == "__main__":
    print(sentinel_frame().to_string())
