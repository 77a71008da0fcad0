"""The instrument: a reference, an embedder and settings, put together once and used on many replies."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from anima.authenticity.analysis import Analysis, Keyword, LazyKeyword, Step
from anima.authenticity.classify import CentroidClassifier, Classifier, ClassifierName, IntentScores, require_classifier
from anima.authenticity.markers import find_markers
from anima.authenticity.model import Model
from anima.authenticity.neighbours import POOLS, Surroundings, cross_pool
from anima.authenticity.poles import NO_POLE, score_pole
from anima.authenticity.profiles import Profile, load_profile
from anima.authenticity.reference import Reference
from anima.authenticity.rules import Rules, RulesName, get_rules
from anima.authenticity.trajectory import assess, transitions
from anima.checks import (
    require_choice,
    require_instance,
    require_int,
    require_number,
    require_text,
    require_texts,
    show,
)
from anima.embedding.base import embed_checked
from anima.errors import InputError
from anima.text import Segment, fields, segment

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from anima.embedding import Embedder

KeywordMode = Literal["lazy", "eager", "off"]

_MAX_NGRAM = 4
_NGRAM_EDGES = ".,;:!¡¿?"
#: Texts embedded between two steps of a progress bar.
_CHUNK = 2000


@dataclass(frozen=True, slots=True)
class Settings:
    """How the instrument decides.

    Attributes
    ----------
    rules
        ``"anima"`` or ``"reference"``; see :mod:`anima.authenticity.rules`.
    classifier
        ``"centroid"``, ``"centroids"`` (several per intent), ``"linear"`` (a head on the vector) or ``"hybrid"`` (a
        head on the vector and the wording); None takes the rules' own.
    intent_threshold
        Cosine below which a sentence is UNCLASSIFIED (centroid classifiers; the heads learned to reject). None: the rules' own, else the embedder's
        profile.
    pole_low, pole_high
        Cuts of the pole score. None: the rules' own, else the embedder's profile.
    k
        Neighbours reported.
    """

    rules: RulesName = "anima"
    classifier: ClassifierName | None = None
    intent_threshold: float | None = None
    pole_low: float | None = None
    pole_high: float | None = None
    k: int = 5

    def __post_init__(self) -> None:
        get_rules(self.rules)
        if self.classifier is not None:
            require_classifier(self.classifier)
        require_int(self.k, "k", low=1)
        for name in ("intent_threshold", "pole_low", "pole_high"):
            if (value := getattr(self, name)) is not None:
                require_number(value, name, low=-2, high=2)


class Instrument:
    """Reads replies.

    Parameters
    ----------
    reference
        What replies are compared with; None for the bundled one.
    embedder
        Turns text into unit vectors; its thresholds come from its profile.
    settings
        How it decides.

    Notes
    -----
    The vectors of the reference are computed once, when first needed. An instrument is safe to share between threads as
    long as its embedder is.
    """

    def __init__(self, reference: Reference | None, embedder: Embedder, settings: Settings | None = None) -> None:
        self.reference = require_instance(
            Reference.bundled() if reference is None else reference, "reference", Reference
        )
        self.embedder = embedder
        self.settings = require_instance(Settings() if settings is None else settings, "settings", Settings)

    def with_settings(self, **changes: Any) -> Instrument:
        """Return an instrument with some settings changed; vectors already computed are shared."""
        other = Instrument(self.reference, self.embedder, replace(self.settings, **changes))
        other.__dict__["model"] = self.model
        if "profile" in self.__dict__:
            other.__dict__["profile"] = self.profile
        return other

    @property
    def rules(self) -> Rules:
        """The set of rules in force."""
        return get_rules(self.settings.rules)

    @cached_property
    def profile(self) -> Profile:
        """Calibrated thresholds of the embedder; computed defaults and a warning when there are none."""
        return load_profile(self.embedder.id, fallback=partial(self._computed_profile))

    @cached_property
    def model(self) -> Model:
        """Vectors, centroids, poles and heads of the reference under this embedder."""
        return Model.open(self.reference, self.embedder)

    @cached_property
    def classifier(self) -> Classifier:
        """The intent classifier in force."""
        name = self.settings.classifier or self.rules.classifier
        threshold = self.intent_threshold if name.startswith("centroid") else 0.0
        return self.model.classifier(require_classifier(name), threshold=threshold)

    @property
    def intent_threshold(self) -> float:
        """The cosine cut of the centroid classifiers."""
        for value in (self.settings.intent_threshold, self.rules.intent_threshold):
            if value is not None:
                return value
        return self.profile.intent_threshold

    @property
    def pole_thresholds(self) -> tuple[float, float]:
        """The (low, high) cuts of the pole score."""
        low, high = self.settings.pole_low, self.settings.pole_high
        if low is None or high is None:  # the profile is asked only when needed: there may be none, and then it warns
            own = self.rules.pole_thresholds or (self.profile.pole_low, self.profile.pole_high)
            low, high = own[0] if low is None else low, own[1] if high is None else high
        if low > high:
            raise InputError(f"pole_low ({low}) must not exceed pole_high ({high})")
        return low, high

    def analyze(self, response: str, question: str | None = None, *, keywords: KeywordMode = "lazy") -> Analysis:
        """Analyse one reply; see :meth:`analyze_many`."""
        require_text(response, "response")
        if question is not None:
            require_text(question, "question")
        return self.analyze_many([response], None if question is None else [question], keywords=keywords)[0]

    def analyze_many(
        self,
        responses: Iterable[str],
        questions: Sequence[str | None] | None = None,
        *,
        keywords: KeywordMode = "lazy",
        progress: bool = False,
    ) -> list[Analysis]:
        """Analyse replies together: all their sentences make one deduplicated batch for the embedder.

        Parameters
        ----------
        responses
            The replies. Blank ones and ones without any letter or digit give an empty analysis that says so.
        questions
            What was asked, one per reply or None; kept for the record, and for a judge.
        keywords
            ``"lazy"`` computes a sentence's keyword when it is looked at, ``"eager"`` at once, ``"off"`` never.
        progress
            Show a progress bar.

        Returns
        -------
        list of Analysis
            One per reply, in order. The result for a reply does not depend on the others.

        Raises
        ------
        InputError
            A reply is no usable str; the message names its place.
        """
        texts = require_texts(responses, "responses")
        require_choice(keywords, "keywords", ("lazy", "eager", "off"))
        asked = self._questions(questions, len(texts))
        segments = [segment(text, self.rules.segment) for text in texts]
        wanted = dict.fromkeys(
            piece
            for text, found in zip(texts, segments, strict=True)
            if found
            for piece in (*[s.text for s in found], text)
        )
        table = self._embed(list(wanted), progress=progress)
        scores = self._classify(segments, table)
        whole = [i for i, found in enumerate(segments) if found]
        near = {}
        if whole:
            queries = np.stack([table[texts[i]] for i in whole])
            near = dict(zip(whole, self.model.neighbourhood.search(queries, self.settings.k), strict=True))
        analyses = []
        at = 0
        for i, (text, found) in enumerate(zip(texts, segments, strict=True)):
            steps = self._steps(found, scores, at, keywords)
            at += len(found)
            analyses.append(self._assemble(text, asked[i], steps, table.get(text), near.get(i)))
        if keywords == "eager":
            for analysis in analyses:
                for step in analysis.steps:
                    _ = step.keyword
        return analyses

    def _embed(self, texts: list[str], *, progress: bool) -> dict[str, NDArray[np.float32]]:
        if not progress or len(texts) <= _CHUNK:
            return self._embed_checked(texts) if texts else {}
        from tqdm.auto import tqdm

        table: dict[str, NDArray[np.float32]] = {}
        with tqdm(total=len(texts), desc="embedding", unit="text") as bar:
            for low in range(0, len(texts), _CHUNK):
                chunk = texts[low : low + _CHUNK]
                table |= self._embed_checked(chunk)
                bar.update(len(chunk))
        return table

    def _embed_checked(self, texts: list[str]) -> dict[str, NDArray[np.float32]]:
        return dict(zip(texts, embed_checked(self.embedder, texts), strict=True))

    def _classify(self, segments: list[list[Segment]], table: dict[str, NDArray[np.float32]]) -> IntentScores | None:
        flat = [s.text for found in segments for s in found]
        if not flat:
            return None
        return self.classifier.classify(flat, np.stack([table[text] for text in flat]))

    def _steps(
        self, found: list[Segment], scores: IntentScores | None, at: int, keywords: KeywordMode
    ) -> tuple[Step, ...]:
        if not found or scores is None:
            return ()
        rows = range(at, at + len(found))
        chain = [scores.chosen[row] for row in rows]
        steps = []
        for i, (row, piece, change) in enumerate(zip(rows, found, transitions(chain), strict=True)):
            compute = (
                None
                if keywords == "off"
                else partial(self._keyword, piece.text, chain[i], float(scores.confidence[row]))
            )
            steps.append(
                Step(
                    index=i,
                    phrase=piece.text,
                    start=piece.start,
                    end=piece.end,
                    intent=chain[i],
                    confidence=float(scores.confidence[row]),
                    runner_up=scores.runner_up[row],
                    margin=float(scores.margin[row]),
                    scores=dict(zip(scores.labels, scores.scores[row].tolist(), strict=True)),
                    position="opening" if i == 0 else "closing" if i == len(found) - 1 else "middle",
                    predicted_next=change.predicted_next,
                    actual_next=change.actual_next,
                    deviation=change.deviation,
                    _keyword=LazyKeyword(compute),
                )
            )
        return tuple(steps)

    def _assemble(
        self, text: str, question: str | None, steps: tuple[Step, ...], vector: Any, near: Surroundings | None
    ) -> Analysis:
        hits = find_markers(text, self.reference.markers, re2=self.rules.re2_markers, question=question)
        note = "" if steps else "the reply is blank" if not text.strip() else "the reply holds no letter or digit"
        low, high = self.pole_thresholds
        near = near or Surroundings((), {}, cross_pool({}))
        return Analysis(
            response=text,
            question=question,
            steps=steps,
            trajectory=assess([step.intent for step in steps], rules=self.rules),
            pole=NO_POLE if vector is None else score_pole(vector, self.model.poles, low=low, high=high),
            neighbours=near.neighbours,
            neighbours_by_pool=near.by_pool,
            pools=near.pools,
            markers=tuple(hit for hit in hits if not hit.suppressed),
            suppressed_markers=tuple(hit for hit in hits if hit.suppressed),
            embedder=self.embedder.id,
            classifier=self.classifier.name,
            rules=self.rules.name,
            note=note,
            loaded_vectors=len(self.reference.pools),
            dim=self.embedder.dim,
            pool_sizes=self._pool_sizes,
        )

    @cached_property
    def _pool_sizes(self) -> dict[str, int]:
        return {pool: sum(entry.pool == pool for entry in self.reference.pools) for pool in POOLS}

    def _keyword(self, phrase: str, intent: str, score: float) -> Keyword:
        """Return the n-gram of 1 to 4 words nearest to the intent's centroid; the whole sentence unless one is nearer.

        An UNCLASSIFIED sentence has no centroid: its keyword is the sentence itself, at no cost.
        """
        centroids = self._centroids
        if intent not in centroids.labels:
            return Keyword(phrase, score)
        target = centroids.vectors[centroids.labels.index(intent)]
        if not isinstance(self.classifier, CentroidClassifier):
            # A probability cannot be compared with cosines: start from the sentence's own cosine.
            score = float(np.asarray(self.embedder.embed([phrase])[0], dtype=np.float64) @ target)
        pieces = fields(phrase)
        grams = [
            " ".join(pieces[i : i + n]).strip(_NGRAM_EDGES)
            for n in range(1, min(_MAX_NGRAM, len(pieces)) + 1)
            for i in range(len(pieces) - n + 1)
        ]
        grams = list(dict.fromkeys(gram for gram in grams if gram.strip()))
        best = Keyword(phrase, score)
        if grams:
            sims = np.asarray(self.embedder.embed(grams), dtype=np.float64) @ target
            winner = int(np.argmax(sims))
            if sims[winner] > score:
                best = Keyword(grams[winner], float(sims[winner]))
        return best

    @cached_property
    def _centroids(self) -> CentroidClassifier:
        built = self.classifier
        if isinstance(built, CentroidClassifier):
            return built
        return self.model.centroids(1, threshold=0.0)

    def _computed_profile(self) -> Profile:
        from anima.authenticity.calibrate import default_profile

        return default_profile(self)

    @staticmethod
    def _questions(questions: Sequence[str | None] | None, n: int) -> list[str | None]:
        if questions is None:
            return [None] * n
        if isinstance(questions, str | bytes | Mapping | Set) or not isinstance(questions, Iterable):
            raise InputError(
                f"questions must be a list of {n} items, one per reply, got {type(questions).__name__} {show(questions)}"
            )
        questions = list(questions)
        if len(questions) != n:
            raise InputError(f"questions must have {n} items, one per reply, got {len(questions)}")
        return [None if q is None else require_text(q, "question", place=f"item {i}") for i, q in enumerate(questions)]
