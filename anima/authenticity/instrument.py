"""The instrument: a reference, an embedder and settings, put together once and used on many replies."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from anima.authenticity.analysis import Analysis, Keyword, LazyKeyword, Step
from anima.authenticity.classify import CLASSIFIERS, CentroidClassifier, Classifier, ClassifierName, IntentScores
from anima.authenticity.intents import UNCLASSIFIED
from anima.authenticity.markers import find_markers
from anima.authenticity.model import Model
from anima.authenticity.neighbours import NOWHERE, POOLS, Surroundings
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
from anima.text import Segment, count_words, fields, segment

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from anima.embedding import Embedder

KeywordMode = Literal["lazy", "eager", "off"]


#: Words of the longest keyword.
MAX_NGRAM = 4
_NGRAM_EDGES = ".,;:!¡¿?"
#: Words up to which a whole reply is too short for the heads; see :meth:`Instrument._borne_out`.
_FEW_WORDS = 3
#: Texts embedded between two steps of a progress bar.
_CHUNK = 2000


class _Scored(NamedTuple):
    """What the classifier said of one sentence; the fields of a step."""

    intent: str
    confidence: float
    runner_up: str
    margin: float
    scores: dict[str, float]


def _scored(found: IntentScores) -> list[_Scored]:
    scores = (dict(zip(found.labels, row, strict=True)) for row in found.scores.tolist())
    return list(map(_Scored, found.chosen, found.confidence.tolist(), found.runner_up, found.margin.tolist(), scores))


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
            require_choice(self.classifier, "classifier", CLASSIFIERS)
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
        return load_profile(self.embedder.id, fallback=self._computed_profile)

    @cached_property
    def model(self) -> Model:
        """Vectors, centroids, poles and heads of the reference under this embedder."""
        return Model.open(self.reference, self.embedder)

    @cached_property
    def classifier(self) -> Classifier:
        """The intent classifier in force."""
        name = self.settings.classifier or self.rules.classifier
        threshold = self.intent_threshold if name.startswith("centroid") else 0.0
        return self.model.classifier(name, threshold=threshold)

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
        whole = [i for i, found in enumerate(segments) if found]
        wanted = dict.fromkeys(piece for i in whole for piece in (*[s.text for s in segments[i]], texts[i]))
        table = self._embed(list(wanted), progress=progress)
        near: dict[int, Surroundings] = {}
        scores: list[_Scored] = []
        if whole:
            queries = np.stack([table[texts[i]] for i in whole])
            near = dict(zip(whole, self.model.neighbourhood.search(queries, self.settings.k), strict=True))
            flat = [s.text for i in whole for s in segments[i]]
            scores = _scored(self.classifier.classify(flat, np.stack([table[text] for text in flat])))
        rest = iter(scores)
        analyses = []
        for i, (text, found) in enumerate(zip(texts, segments, strict=True)):
            own, note = self._borne_out(found, [next(rest) for _ in found], table)
            if not found:
                note = "the reply holds no letter or digit" if text.strip() else "the reply is blank"
            steps = self._steps(found, own, keywords)
            analyses.append(self._assemble(text, asked[i], steps, table.get(text), near.get(i), note))
        if keywords == "eager":
            _ = [step.keyword for analysis in analyses for step in analysis.steps]
        return analyses

    def _embed(self, texts: list[str], *, progress: bool) -> dict[str, NDArray[np.float32]]:
        size = _CHUNK if progress else max(1, len(texts))
        chunks = [texts[low : low + size] for low in range(0, len(texts), size)]
        if len(chunks) < 2:
            return dict(zip(texts, embed_checked(self.embedder, texts), strict=True)) if texts else {}
        from tqdm.auto import tqdm

        table: dict[str, NDArray[np.float32]] = {}
        with tqdm(total=len(texts), desc="embedding", unit="text") as bar:
            for chunk in chunks:
                table |= zip(chunk, embed_checked(self.embedder, chunk), strict=True)
                bar.update(len(chunk))
        return table

    def _borne_out(
        self, found: list[Segment], scored: list[_Scored], table: dict[str, NDArray[np.float32]]
    ) -> tuple[list[_Scored], str]:
        """Withhold a head's label from a reply of very few words unless the centroid of the intent bears it out.

        No labelled reply is as short and hardly any labelled sentence, so that a head has nothing to go by there, and
        says what it says no less surely: "Ok." would be REPAIR.
        """
        n_words = sum(count_words(piece.text) for piece in found)
        if not found or n_words > _FEW_WORDS or isinstance(self.classifier, CentroidClassifier):
            return scored, ""
        cosines = self._centroids.classify([], np.stack([table[piece.text] for piece in found])).scores
        withheld = False
        for i, one in enumerate(scored):
            if one.intent == UNCLASSIFIED:
                continue
            near = cosines[i, self._centroids.labels.index(one.intent)]
            if near < self.intent_threshold:
                withheld = True
                plain = one.scores[UNCLASSIFIED]
                scored[i] = one._replace(intent=UNCLASSIFIED, confidence=plain, runner_up=one.intent, margin=0.0)
        words = "one word" if n_words == 1 else f"{n_words} words"
        return scored, f"a reply of {words} is too short to name an intent by" if withheld else ""

    def _steps(self, found: list[Segment], scored: list[_Scored], keywords: KeywordMode) -> tuple[Step, ...]:
        changes = transitions([one.intent for one in scored])
        steps = []
        for i, (piece, one, change) in enumerate(zip(found, scored, changes, strict=True)):
            compute = None if keywords == "off" else partial(self._keyword, piece.text, one.intent, one.confidence)
            steps.append(
                Step(
                    index=i,
                    phrase=piece.text,
                    start=piece.start,
                    end=piece.end,
                    **one._asdict(),
                    position="opening" if i == 0 else "closing" if i == len(found) - 1 else "middle",
                    **change._asdict(),
                    _keyword=LazyKeyword(compute),
                )
            )
        return tuple(steps)

    def _assemble(
        self,
        text: str,
        question: str | None,
        steps: tuple[Step, ...],
        vector: Any,
        near: Surroundings | None,
        note: str,
    ) -> Analysis:
        hits = find_markers(text, self.reference.markers, re2=self.rules.re2_markers, question=question)
        low, high = self.pole_thresholds
        near = near or NOWHERE
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
        if self.classifier.name != "centroid":  # the score is another: start from the cosine to this centroid
            score = float(np.asarray(self.embedder.embed([phrase])[0], dtype=np.float64) @ target)
        pieces = fields(phrase)
        grams = [
            " ".join(pieces[i : i + n]).strip(_NGRAM_EDGES)
            for n in range(1, min(MAX_NGRAM, len(pieces)) + 1)
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
        """One centroid per intent, whatever the classifier in force."""
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
