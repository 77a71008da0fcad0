"""From the name of a judge to what answers: a client, or the rules."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, TypeAlias, Union

from anima.checks import show
from anima.endpoint import model_spec, wrong_spec
from anima.errors import InputError
from anima.judge.ask import judge_analysis
from anima.judge.rules import rules_verdict

if TYPE_CHECKING:
    from anima.authenticity.analysis import Analysis
    from anima.judge.client import Client
    from anima.judge.prompt import NotesLang
    from anima.judge.request import Options
    from anima.judge.verdict import Unscored, Verdict

Judge: TypeAlias = Union["Client", Literal["rules"]]

FORMS: Final = '"ollama", "ollama:MODEL", "ollama:MODEL@URL", "openai:MODEL@URL" or "rules"'


def get_judge(spec: str | Judge) -> Judge:
    """Return the judge that ``spec`` names; no server is asked yet.

    Parameters
    ----------
    spec
        ``"ollama"`` or ``"ollama:MODEL[@URL]"`` (defaults as in :class:`~anima.judge.ollama.OllamaClient`),
        ``"openai:MODEL@URL"`` for any server with that interface, ``"rules"`` for the fall-back without a model, or a
        client, which is returned as it is.

    Raises
    ------
    SettingsError
        If the text has none of these forms.
    """
    if not isinstance(spec, str):
        if not isinstance(spec, type) and all(callable(getattr(spec, name, None)) for name in ("stream", "complete")):
            return spec
        raise InputError(f"judge must be {FORMS}, or a client; got {type(spec).__name__} {show(spec)}")
    kind, model, url = model_spec(spec)
    if kind == "rules" and not model and not url:
        return "rules"
    if kind == "ollama":
        from anima.judge.ollama import OllamaClient

        return OllamaClient(model, url)
    if kind == "openai" and model and url:
        from anima.judge.openai import OpenAIClient

        return OpenAIClient(model, url)
    raise wrong_spec("judge", FORMS, spec)


def judge_name(judge: Judge) -> str:
    """Return the name of a judge, as events and tables show it."""
    return judge if isinstance(judge, str) else judge.model


def give_verdict(
    analysis: Analysis, judge: str | Judge, *, lang: NotesLang = "en", options: Options | None = None
) -> Verdict | Unscored:
    """Return the verdict of any judge on an analysed reply; see :func:`~anima.judge.ask.judge_analysis`."""
    found = get_judge(judge)
    if isinstance(found, str):
        return rules_verdict(analysis, lang=lang)
    return judge_analysis(analysis, found, lang=lang, options=options)
