"""Detectors one can read: the commonest label, a written lexicon, learnt phrases, and centroids of few examples."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from anima.checks import require_choice, require_int, show
from anima.detectors.base import Detector
from anima.errors import InputError

if TYPE_CHECKING:
    from anima.detectors.base import Part
    from anima.detectors.texts import Texts
    from anima.lexicon import PhraseLexicon
    from anima.stats.weighted import Flags, Floats

#: How a label is told: categories of :mod:`anima.lexicon`, or a function of a text that counts what speaks for it.
Rule = str | Sequence[str] | Callable[[str], float]


class Majority(Detector):
    """Always says the commonest label: the trivial baseline."""

    name = "majority"

    def _fit(self, texts: Texts, truth: Flags) -> None:  # noqa: ARG002
        self._margins = truth.mean(axis=0) - truth.mean(axis=0).max()
        # Of equally common labels the first, so that what is said does not depend on ``exclusive``.
        ties = (self._margins == 0) & (np.arange(len(self._margins)) != self._margins.argmax())
        self._margins[ties] = -1 / len(truth)

    def _scores(self, texts: Texts) -> Floats:
        return np.tile(self._margins, (len(texts), 1))

    def _parts(self, text: Texts, place: int) -> list[Part]:  # noqa: ARG002
        return [("share of texts, less the commonest label's", "prior", float(self._margins[place]))]


class _Lexical(Detector):
    """A label holds where something is found; where nothing is, the margin is its share less 1."""

    def _fit(self, texts: Texts, truth: Flags) -> None:  # noqa: ARG002
        self._shares = truth.mean(axis=0)

    def _found(self, texts: Texts) -> list[list[list[Part]]]:
        """Return what is found of each label in each text."""
        raise NotImplementedError

    def _scores(self, texts: Texts) -> Floats:
        out = np.tile(self._shares - 1, (len(texts), 1))
        for i, row in enumerate(self._found(texts)):
            for j, parts in enumerate(row):
                if parts:
                    out[i, j] = sum(part[2] for part in parts)
        return out

    def _parts(self, text: Texts, place: int) -> list[Part]:
        found = self._found(text)[0][place]
        return found or [("nothing found: share of texts, less 1", "prior", float(self._shares[place] - 1))]


class HandLexicon(_Lexical):
    """The written lexicon: a label holds where one of its categories is found and not negated.

    Parameters
    ----------
    rules
        For each label its categories of :func:`anima.lexicon.scan` (or their Spanish aliases), or a function ``text ->
        number`` (at 0, nothing is found). Labels without a rule are never found. Nothing is learnt but the labels' shares.
    """

    def __init__(self, rules: Mapping[str, Rule], *, name: str = "hand lexicon") -> None:
        from anima.lexicon import load_lexicon

        known = tuple(load_lexicon().categories)
        aliases = {item.alias: item.name for item in load_lexicon().categories.values()}
        self.name = name
        self._functions: dict[str, Callable[[str], float]] = {}
        self._categories: dict[str, frozenset[str]] = {}
        for label, rule in rules.items():
            if callable(rule):
                self._functions[label] = rule
                continue
            names = [rule] if isinstance(rule, str) else list(rule)
            self._categories[label] = frozenset(
                require_choice(aliases.get(item, item), f"rules[{label!r}]", known) for item in names
            )

    def _fit(self, texts: Texts, truth: Flags) -> None:
        if unknown := (self._functions.keys() | self._categories.keys()) - set(self.labels):
            known = show(list(self.labels), 200)
            raise InputError(f"rules name {show(sorted(unknown))}, which labels lack; they are {known}")
        super()._fit(texts, truth)

    def _found(self, texts: Texts) -> list[list[list[Part]]]:
        from anima.lexicon import scan_many

        out = []
        for text, hits in zip(texts, scan_many(texts), strict=True):
            row: list[list[Part]] = []
            for label in self.labels:
                wanted = self._categories.get(label, frozenset())
                parts = [(h.text, h.category, 1.0) for h in hits if h.category in wanted and h.polarity != "negated"]
                if label in self._functions and (value := float(self._functions[label](text))) > 0:
                    parts.append((getattr(self._functions[label], "__name__", "rule"), "rule", value))
                row.append(parts)
            out.append(row)
        return out


class LearntPhrases(_Lexical):
    """Phrases learnt by :func:`anima.lexicon.learn`, label by label; the margin is the best phrase's precision.

    Parameters
    ----------
    min_support, max_words, folds, seed
        As there; its bars are chosen on inner folds by dialogue.
    """

    name = "learnt phrases"

    def __init__(self, *, min_support: int = 3, max_words: int = 4, folds: int = 4, seed: int = 0) -> None:
        self.min_support = require_int(min_support, "min_support", low=1)
        self.max_words = require_int(max_words, "max_words", low=1, high=8)
        self.folds, self.seed = require_int(folds, "folds", low=2), seed
        self.lexicons: dict[str, PhraseLexicon] = {}

    def _fit(self, texts: Texts, truth: Flags) -> None:
        from anima.lexicon import PhraseLexicon
        from anima.lexicon.learn import PRECISIONS, PRIORS, Grams, take

        super()._fit(texts, truth)
        try:
            grams: Grams | None = Grams(list(texts), self.max_words)
        except InputError:  # in a small training part no phrase may stand twice: there are none, which is no mistake
            grams = None
        n_groups, rows = len(np.unique(texts.groups)), np.arange(len(texts))
        bars = [(precision, weight) for precision in PRECISIONS for weight in PRIORS] if n_groups > 2 else [(0.5, 2.0)]
        settings = {"min_support": self.min_support, "max_words": self.max_words, "seed": self.seed}
        for label, wanted in zip(self.labels, truth.T, strict=True):
            chosen: list[int] = []
            if grams and wanted.any() and not wanted.all():  # a label that all texts or none have gets no phrase
                folds = min(self.folds, n_groups)
                _, chosen = take(grams, wanted, texts.groups, rows, bars, self.min_support, folds, self.seed)
            phrases = tuple(grams.phrase(j, wanted) for j in chosen) if grams else ()
            self.lexicons[label] = PhraseLexicon(label, phrases, settings)
        # On the training texts a phrase stands n times; shrunk by one imagined text with the label's own share.
        self._worth = [
            {p.phrase: (p.hits + share) / (p.n + 1) for p in self.lexicons[label].phrases}
            for label, share in zip(self.labels, self._shares, strict=True)
        ]

    def _found(self, texts: Texts) -> list[list[list[Part]]]:
        out = []
        for runs in texts.runs(self.max_words):
            row: list[list[Part]] = []
            for worth in self._worth:
                best = min(((-worth[run], run) for run in runs if run in worth), default=None)
                row.append([(best[1], "phrase", -best[0])] if best else [])
            out.append(row)
        return out


class FewShotCentroids(Detector):
    """The label whose few examples lie nearest, by cosine to the centre of ``k`` training texts each.

    Each text gets exactly one label, also where labels may go together.

    Parameters
    ----------
    k
        Examples of each label, drawn from the training texts; all of them where there are fewer.
    seed
        Seed of the draw. Which examples are drawn matters at small ``k``: look at several seeds.
    """

    def __init__(self, k: int = 8, *, seed: int = 0) -> None:
        self.k, self.seed = require_int(k, "k", low=1), require_int(seed, "seed", low=0)
        self.name = f"{self.k}-shot centroids"

    def _fit(self, texts: Texts, truth: Flags) -> None:
        rng = np.random.default_rng(self.seed)
        vectors = texts.vectors()
        self._examples: list[tuple[list[str], Floats]] = []
        for wanted in truth.T:
            rows = rng.permutation(np.flatnonzero(wanted & vectors.any(axis=1)))[: self.k]
            centre = vectors[rows]
            length = np.linalg.norm(centre.sum(axis=0)) if len(rows) else 0.0
            self._examples.append(([texts[row] for row in rows], centre / length if length else centre))
        self._centres = np.array(
            [rows.sum(axis=0) if len(rows) else np.zeros(vectors.shape[1]) for _, rows in self._examples]
        )

    def _scores(self, texts: Texts) -> Floats:
        cosines = texts.vectors() @ self._centres.T
        cosines[:, [not names for names, _ in self._examples]] = -1.0  # a label without examples is never nearest
        return np.asarray(cosines - cosines.max(axis=1, keepdims=True))

    def _parts(self, text: Texts, place: int) -> list[Part]:
        names, rows = self._examples[place]
        own = rows @ text.vectors()[0]
        best = float(own.sum() if names else -1.0) - float(self._scores(text)[0, place])
        parts: list[Part] = [(name, "example", float(value)) for name, value in zip(names, own, strict=True)]
        return [*(parts or [("no example", "prior", -1.0)]), ("cosine of the nearest label", "rival", -best)]
