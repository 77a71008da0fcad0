"""The facade behind ``import anima``: everything wired together once, so that nothing below imports upwards."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from anima.authenticity.instrument import Instrument, KeywordMode, Settings
from anima.authenticity.rules import get_rules
from anima.checks import require_columns, require_instance, require_text
from anima.corpora import load_corpus as load_corpus
from anima.embedding import CachedEmbedder, Embedder, get_embedder
from anima.errors import InputError
from anima.settings import env

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    import pandas as pd

    from anima.authenticity.analysis import Analysis
    from anima.authenticity.calibrate import Calibration, Target
    from anima.authenticity.evaluate import Evaluation
    from anima.authenticity.golden import GoldenReply
    from anima.authenticity.reference import Reference


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
    if settings is not None:
        require_instance(settings, "settings", Settings)
    if settings is not None and changes:
        raise InputError(
            f"give either settings or single settings by name, not both (got settings and {', '.join(changes)})"
        )
    if unknown := changes.keys() - Settings.__dataclass_fields__.keys():
        known = ("embedder", "reference", "settings", *Settings.__dataclass_fields__)
        raise InputError(f"unknown setting {', '.join(map(repr, sorted(unknown)))}; known are {', '.join(known)}")
    chosen = settings or Settings(**changes)
    name = chosen.classifier or get_rules(chosen.rules).classifier
    if changes.get("intent_threshold") is not None and not name.startswith("centroid"):
        raise InputError(
            f"intent_threshold={chosen.intent_threshold} would change nothing: it belongs to the centroid classifiers and "
            f"{name!r} is in force; add classifier='centroid'"
        )
    spec = env("EMBEDDER", "bundled") if embedder is None else embedder
    if isinstance(spec, str) and reference is None:
        base = _shared(spec, env("EMBEDDING_CACHE", ""))
        return (
            base
            if chosen == Settings()
            else base.with_settings(**{name: getattr(chosen, name) for name in Settings.__dataclass_fields__})
        )
    found = get_embedder(spec)
    return Instrument(reference, found if isinstance(found, CachedEmbedder) else _cached(found), chosen)


@lru_cache(maxsize=4)
def _shared(spec: str, cache_path: str) -> Instrument:
    return Instrument(None, CachedEmbedder(get_embedder(spec), path=cache_path or None))


def _cached(embedder: Embedder) -> CachedEmbedder:
    return CachedEmbedder(embedder, path=env("EMBEDDING_CACHE", "") or None)


def analyze(response: str, question: str | None = None, *, keywords: KeywordMode = "lazy", **options: Any) -> Analysis:
    """Say how one reply manages its reader.

    Parameters
    ----------
    response
        The reply, Spanish or English, any length.
    question
        What was asked; kept for the record.
    keywords
        When the keyword of each sentence is computed: ``"lazy"`` (looked at), ``"eager"`` (now) or ``"off"``.
    options
        Passed to :func:`instrument`, e.g. ``embedder="ollama"`` or ``classifier="centroid"``.

    Returns
    -------
    Analysis
        Shows itself in a notebook; ``to_frame()``, ``to_dict()``, ``plot()`` and ``summary()`` for the rest.

    Examples
    --------
    >>> import anima
    >>> anima.analyze("Great question! Water boils at 100 degrees Celsius at sea level.").chain
    ('VALIDATE', 'UNCLASSIFIED')
    """
    return instrument(**options).analyze(response, question, keywords=keywords)


def analyze_many(
    responses: Iterable[str],
    questions: Sequence[str | None] | None = None,
    *,
    keywords: KeywordMode = "lazy",
    progress: bool = True,
    **options: Any,
) -> list[Analysis]:
    """Analyse many replies in one deduplicated batch; see :func:`analyze`. A result does not depend on the other
    replies.
    """
    return instrument(**options).analyze_many(responses, questions, keywords=keywords, progress=progress)


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
