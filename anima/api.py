"""The facade behind ``import anima``: everything wired together once, so that nothing below imports upwards."""

from __future__ import annotations

from dataclasses import asdict, fields, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, get_args

from anima.authenticity.instrument import Instrument, KeywordMode, Settings
from anima.authenticity.rules import get_rules
from anima.checks import require_choice, require_columns, require_instance, require_text
from anima.corpora import load_corpus as load_corpus
from anima.embedding import CachedEmbedder, Embedder, get_embedder
from anima.errors import InputError
from anima.settings import env

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Generator, Iterable, Sequence
    from pathlib import Path

    import pandas as pd

    from anima.authenticity.analysis import Analysis
    from anima.authenticity.calibrate import Calibration, Target
    from anima.authenticity.evaluate import Evaluation
    from anima.authenticity.golden import GoldenReply
    from anima.authenticity.reference import Reference
    from anima.judge.events import Event
    from anima.judge.prompt import NotesLang
    from anima.judge.refine import Refinement
    from anima.judge.request import Options
    from anima.judge.resolve import Judge
    from anima.judge.stream import Mode


def instrument(
    *,
    embedder: str | Embedder | None = None,
    reference: Reference | None = None,
    settings: Settings | None = None,
    **changes: Any,
) -> Instrument:
    """Return an instrument; the default one is built once and shared.

    Parameters
    ----------
    embedder
        ``"bundled"``, ``"ollama:MODEL[@URL]"``, ``"openai:MODEL@URL"`` or an :class:`~anima.embedding.Embedder`; None
        reads ``ANIMA_EMBEDDER``.
    reference
        What replies are compared with; None for the bundled one.
    settings, changes
        Settings, or single ones by name: ``anima.instrument(rules="reference")``.

    Notes
    -----
    Vectors are cached in memory (``ANIMA_CACHE_SIZE``, 2000), and in the SQLite file named by ``ANIMA_EMBEDDING_CACHE``
    if there is one.
    """
    names = [field.name for field in fields(Settings)]
    if settings is not None and changes:
        raise InputError(
            f"give either settings or single settings by name, not both (got settings and {', '.join(changes)})"
        )
    if unknown := changes.keys() - set(names):
        known = ", ".join(("embedder", "reference", "settings", *names))
        raise InputError(f"unknown setting {', '.join(map(repr, sorted(unknown)))}; known are {known}")
    chosen = Settings(**changes) if settings is None else require_instance(settings, "settings", Settings)
    name = chosen.classifier or get_rules(chosen.rules).classifier
    if chosen.intent_threshold is not None and not name.startswith("centroid"):
        raise InputError(
            f"intent_threshold={chosen.intent_threshold} would change nothing: it belongs to the centroid classifiers and "
            f"{name!r} is in force; add classifier='centroid'"
        )
    spec = env("EMBEDDER", "bundled") if embedder is None else embedder
    if isinstance(spec, str) and reference is None:
        base = _shared(spec, env("EMBEDDING_CACHE", ""))
        return base if chosen == Settings() else base.with_settings(**asdict(chosen))
    return Instrument(reference, _cached(spec, env("EMBEDDING_CACHE", "")), chosen)


@lru_cache(maxsize=4)
def _shared(spec: str, cache: str) -> Instrument:
    return Instrument(None, _cached(spec, cache))


def _cached(spec: str | Embedder, cache: str) -> CachedEmbedder:
    found = get_embedder(spec)
    return found if isinstance(found, CachedEmbedder) else CachedEmbedder(found, path=cache or None)


def analyze(
    response: str,
    question: str | None = None,
    *,
    judge: str | Judge | None = None,
    lang: NotesLang = "en",
    judge_options: Options | None = None,
    keywords: KeywordMode = "lazy",
    **options: Any,
) -> Analysis:
    """Say how one reply manages its reader.

    Parameters
    ----------
    response
        The reply, Spanish or English, any length.
    question
        What was asked; the judge reads it, the instrument keeps it for the record.
    judge
        Who gives a verdict on the whole as well: ``"ollama:MODEL[@URL]"``, ``"openai:MODEL@URL"``, a client, or ``"rules"``, a
        fall-back without a language model whose verdicts are marked as such. None asks nobody.
    lang, judge_options
        Language of the judge's notes (refused without a judge), and how its model is to answer
        (:class:`anima.judge.Options`).
    keywords
        When the keyword of each sentence is computed: ``"lazy"`` (looked at), ``"eager"`` (now) or ``"off"``.
    options
        Passed to :func:`instrument`, e.g. ``embedder="ollama"`` or ``classifier="centroid"``.

    Returns
    -------
    Analysis
        Shows itself in a notebook; ``to_frame()``, ``to_dict()``, ``plot()`` and ``summary()`` for the rest. Its ``verdict`` is a
        :class:`~anima.judge.Verdict`, or an :class:`~anima.judge.Unscored` with the reason: a judge that fails raises nothing.

    Examples
    --------
    >>> import anima
    >>> anima.analyze("Great question! Water boils at 100 degrees Celsius at sea level.").chain
    ('VALIDATE', 'UNCLASSIFIED')
    """
    found = _judge(judge, lang)
    analysis = instrument(**options).analyze(response, question, keywords=keywords)
    if found is None:
        return analysis
    from anima.judge.resolve import give_verdict

    return replace(analysis, verdict=give_verdict(analysis, found, lang=lang, options=judge_options))


def _judge(judge: str | Judge | None, lang: str) -> Judge | None:
    """Return who judges, before any work is done that a wrong name would waste."""
    if judge is None:
        if lang != "en":
            raise InputError(
                f"lang={lang!r} is the language of a judge's notes, and there is no judge: add one, or leave it out "
                "(replies are read in English and Spanish alike)"
            )
        return None
    from anima.judge.prompt import NotesLang
    from anima.judge.resolve import get_judge

    require_choice(lang, "lang", get_args(NotesLang))
    return get_judge(judge)


def analyze_many(
    responses: Iterable[str],
    questions: Sequence[str | None] | None = None,
    *,
    judge: str | Judge | None = None,
    lang: NotesLang = "en",
    judge_options: Options | None = None,
    keywords: KeywordMode = "lazy",
    progress: bool = True,
    **options: Any,
) -> list[Analysis]:
    """Analyse many replies in one deduplicated batch; see :func:`analyze`. A result does not depend on the other replies.

    The judge is asked four replies at a time; :func:`anima.judge.judge_panel` offers repeats, and a file that a killed run goes
    on from.
    """
    found = _judge(judge, lang)
    analyses = instrument(**options).analyze_many(responses, questions, keywords=keywords, progress=progress)
    if found is None or not analyses:
        return analyses
    from anima.judge.run import judge_panel

    panel = judge_panel(analyses, found, lang=lang, options=judge_options, progress=progress)
    return [replace(one, verdict=judged.outcome) for one, judged in zip(analyses, panel.judgements, strict=True)]


def analyze_frame(frame: pd.DataFrame, text: str = "response", **options: Any) -> pd.DataFrame:
    """Return one row of figures per reply, with the index of ``frame``.

    Pure and row-wise, so that it also works on the partitions of a larger frame
    (``ddf.map_partitions(anima.analyze_frame)``). A missing text (None, NaN) gives a row of undefined figures whose
    ``note`` says so.

    Parameters
    ----------
    frame
        Any DataFrame.
    text
        Name of the column that holds the replies.
    """
    import pandas as pd

    require_columns(frame, [text])
    missing = frame[text].isna().to_numpy()
    replies = ["" if absent else value for absent, value in zip(missing, frame[text].tolist(), strict=True)]
    for label, reply in zip(frame.index, replies, strict=True):
        require_text(reply, f"frame[{text!r}]", place=f"row {label!r}")
    # An empty frame gets the columns and types of one blank reply, so that empty partitions fit the others.
    rows = [analysis.row() for analysis in instrument(**options).analyze_many(replies or [""], keywords="off")]
    for row, absent in zip(rows, missing, strict=False):
        if absent:
            row["note"] = "the reply is missing"
    return pd.DataFrame(rows).iloc[: len(frame)].set_index(frame.index)


def stream(
    response: str | None,
    question: str | None = None,
    *,
    judge: str | Judge,
    mode: Mode = "both",
    lang: NotesLang = "en",
    judge_options: Options | None = None,
    **options: Any,
) -> Generator[Event, None, None]:
    """Judge one reply, yielding what happens as it happens; see :func:`anima.judge.stream.stream`.

    Parameters
    ----------
    response, question, judge, lang, judge_options, options
        As for :func:`analyze`; the reply is ignored by ``mode="refine"``.
    mode
        ``"analyze"`` the reply, ``"refine"`` the question, or ``"both"``.

    Examples
    --------
    >>> import anima
    >>> [event.name for event in anima.stream("Great question! It boils.", judge="rules")]
    ['pre_analysis', 'judge_loading', 'complete']

    :func:`anima.judge.display` shows the events in a notebook while they come.
    """
    from anima.judge.stream import stream as run

    found = instrument(**options)
    return run(response, question, judge=judge, mode=mode, instrument=found, lang=lang, options=judge_options)


def astream(
    response: str | None,
    question: str | None = None,
    *,
    judge: str | Judge,
    mode: Mode = "both",
    lang: NotesLang = "en",
    judge_options: Options | None = None,
    **options: Any,
) -> AsyncGenerator[Event, None]:
    """Judge one reply under asyncio; as :func:`stream`."""
    from anima.judge.stream import astream as run

    found = instrument(**options)
    return run(response, question, judge=judge, mode=mode, instrument=found, lang=lang, options=judge_options)


def refine(
    question: str, *, judge: str | Judge, lang: NotesLang = "en", judge_options: Options | None = None
) -> Refinement:
    """Rewrite a question so that it no longer invites a managed reply; see :func:`anima.judge.refine.refine`.

    Parameters
    ----------
    question
        English or Spanish; the new one keeps its language.
    judge, lang, judge_options
        As for :func:`analyze`. Where the judge gives no question, that of the rules, marked as a fall-back with the reason.

    Examples
    --------
    >>> import anima
    >>> anima.refine("Don't you think my brilliant plan saves water, yes or no?", judge="rules").refined
    'Is it the case that my plan saves water?'
    """
    from anima.judge.refine import refine as run
    from anima.judge.resolve import get_judge

    return run(question, judge=get_judge(judge), lang=lang, options=judge_options)


def evaluate(golden: str | Path | Sequence[GoldenReply] | None = None, **options: Any) -> Evaluation:
    """Measure the instrument on a golden set: ``"dev"`` (default), ``"test"``, a file, or replies; see
    :func:`anima.authenticity.evaluate.evaluate`.
    """
    from anima.authenticity.evaluate import evaluate as run

    return run(instrument(**options), golden)


def calibrate(
    golden: str | Path | Sequence[GoldenReply] | None = None,
    grid: Sequence[float] | None = None,
    *,
    target: Target = "intent",
    **options: Any,
) -> Calibration:
    """Choose thresholds for the embedder in use; see :func:`anima.authenticity.calibrate.calibrate`."""
    from anima.authenticity.calibrate import calibrate as run

    return run(instrument(**options), golden, grid, target=target)
