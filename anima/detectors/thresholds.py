"""Thresholds that make the most of margins: by F1 of each label, or by macro-F1 where labels exclude each other."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from anima.detectors.base import decide

if TYPE_CHECKING:
    from anima.stats.weighted import Flags, Floats

_ROUNDS = 3  # of going through the labels; a fourth changes nothing on either corpus


def macro_f1(scores: Floats, truth: Flags, exclusive: bool) -> float:
    """Return the mean F1 of the labels that occur in ``truth``."""
    found = decide(scores, exclusive)
    with np.errstate(invalid="ignore"):
        values = 2 * (found & truth).sum(axis=0) / (found.sum(axis=0) + truth.sum(axis=0))
    return float(values[truth.any(axis=0)].mean()) if truth.any() else 0.0


def thresholds_of(scores: Floats, truth: Flags, exclusive: bool) -> Floats:
    """Return what to take off each label's score; 0 for a label that does not occur.

    Exact for one label: every cut between two scores is tried. Where labels exclude each other, one label after the
    other is moved to its best place, the others held.
    """
    out = np.zeros(scores.shape[1])
    if not exclusive:
        for j in range(scores.shape[1]):
            if truth[:, j].any():
                out[j] = _cut(scores[:, j], truth[:, j])
        return out
    best = macro_f1(scores, truth, exclusive)
    for _ in range(_ROUNDS):
        for j in map(int, np.flatnonzero(truth.any(axis=0))):
            moved = out.copy()
            moved[j] = _handicap(scores, truth, out, j)
            # Ties may fall otherwise than the search assumes, so that a move must show its gain.
            if (worth := macro_f1(scores - moved, truth, exclusive)) > best:
                out, best = moved, worth
    return out


def _cut(scores: Floats, wanted: Flags) -> float:
    """Return the threshold with the highest F1, between two scores."""
    order = np.argsort(-scores, kind="stable")
    ranked = scores[order]
    f1 = 2 * np.cumsum(wanted[order]) / (np.arange(1, len(ranked) + 1) + wanted.sum())
    f1[:-1][ranked[:-1] == ranked[1:]] = -1  # equal scores fall on one side
    best = int(f1.argmax())
    return float((ranked[best] + ranked[best + 1]) / 2 if best + 1 < len(ranked) else ranked[best] - 1e-9)


def _handicap(scores: Floats, truth: Flags, current: Floats, j: int) -> float:
    """Return the handicap of label ``j`` with the highest macro-F1, the other labels' being held."""
    rest = scores - current
    rest[:, j] = -np.inf
    rival = rest.argmax(axis=1)
    # A row goes to j once the handicap is below its lead; rows are given to j in the order of their lead.
    lead = scores[:, j] - rest[np.arange(len(rest)), rival]
    order = np.argsort(-lead, kind="stable")
    lead, rival, wanted = lead[order], rival[order], truth[order]
    given = rival[:, None] == np.arange(scores.shape[1])

    def left(rows: Flags) -> Floats:
        """Return the column sums of what is left when the first 0, 1, … n rows are taken away."""
        return np.vstack([np.zeros((1, rows.shape[1])), np.cumsum(rows[::-1], axis=0)])[::-1]

    held, hits, total = left(given), left(given & wanted), wanted.sum(axis=0)
    held[:, j], hits[:, j] = np.arange(len(lead) + 1), total[j] - left(wanted)[:, j]
    f1 = (2 * hits / np.maximum(held + total, 1))[:, total > 0].mean(axis=1)
    f1[1:-1][lead[:-1] == lead[1:]] = -1  # equal leads fall on one side
    edges = np.concatenate([[lead[0] + 1e-9], (lead[:-1] + lead[1:]) / 2, [lead[-1] - 1e-9]])
    return float(edges[f1.argmax()])
