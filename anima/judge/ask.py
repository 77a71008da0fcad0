"""One judgement, not streamed: the request, the call, the reading of the answer, the receipt."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from anima.authenticity.analysis import Analysis
from anima.checks import require_instance
from anima.errors import JudgeError
from anima.judge.parse import parse_verdict
from anima.judge.prompt import NotesLang, PromptName, judge_request, prompt_hash
from anima.judge.request import Options
from anima.judge.verdict import Receipt, Unscored, Verdict
from anima.version import __version__

if TYPE_CHECKING:
    from anima.judge.client import Client
    from anima.judge.request import Completion


def judge_analysis(
    analysis: Analysis, client: Client, *, lang: NotesLang = "en", options: Options | None = None
) -> Verdict | Unscored:
    """Ask a judge about one analysed reply.

    Parameters
    ----------
    analysis
        From :func:`anima.analyze`.
    client
        An Ollama or OpenAI-compatible client.
    lang
        Language of the notes.
    options
        How the model is to answer.

    Returns
    -------
    Verdict or Unscored
        A call that fails, an answer that cannot be read and a reply without a sentence are Unscored with a reason: a
        batch goes on. For a failed call the reason names the error and ``raw`` and ``thinking`` hold what had come.
    """
    require_instance(analysis, "analysis", Analysis)
    options = options or Options()
    if not analysis.steps:
        return nothing_to_judge(analysis, client.model, lang, options)
    try:
        answer: Completion | JudgeError = client.complete(judge_request(analysis, lang=lang, options=options))
    except JudgeError as error:
        answer = error
    return read_answer(analysis, answer, client.model, lang, options)


def nothing_to_judge(analysis: Analysis, model: str, lang: NotesLang, options: Options) -> Unscored:
    """Return the outcome of a reply without a sentence, about which nobody is asked."""
    reason = f"no sentence to judge: {analysis.note or 'empty reply'}"
    return Unscored(reason, receipt=make_receipt(model, "judge", lang, options), kind="not_applicable")


def read_answer(
    analysis: Analysis, answer: Completion | JudgeError, model: str, lang: NotesLang, options: Options
) -> Verdict | Unscored:
    """Return what a complete answer, or the failure of the call, says of ``analysis``; the streamed judge ends here as well."""
    if isinstance(answer, JudgeError):
        receipt = make_receipt(model, "judge", lang, options)
        return Unscored(f"{answer.reason}: {answer}", answer.content, answer.thinking, receipt, "call_failed")
    receipt = make_receipt(answer.model, "judge", lang, options, answer)
    # Everything the judge was shown of others' words: none of it is its answer.
    shown = [analysis.response, analysis.question or "", *(near.entry.text for near in analysis.neighbours)]
    return parse_verdict(answer.content, answer.thinking, quoted=shown, receipt=receipt)


def make_receipt(
    model: str, name: PromptName, lang: NotesLang, options: Options, completion: Completion | None = None
) -> Receipt:
    """Return the receipt of a call; without a completion it says what was asked of whom."""
    asked = Receipt(
        model=model,
        prompt_hash=prompt_hash(name, lang),
        options={"lang": lang} | asdict(options),
        seed=options.seed,
        version=__version__,
    )
    if completion is None:
        return asked
    times = {
        "total": completion.seconds,
        "first_token": completion.first_token_seconds,
        "load": completion.load_seconds,
    }
    return Receipt(
        **vars(asked)
        | {
            "digest": completion.digest,
            "prompt_tokens": completion.prompt_tokens,
            "output_tokens": completion.output_tokens,
            "truncated": completion.truncated,
            "times": {phase: seconds for phase, seconds in times.items() if seconds is not None},
            # What the server would not take was not in force.
            "options": dict(asked.options) | {"dropped": list(completion.dropped), "attempts": completion.attempts},
        }
    )
