"""negspaCy as a rival of the negation rules, where it is installed."""

from __future__ import annotations

import importlib
import importlib.util
import warnings
from typing import TYPE_CHECKING, Any

from anima.negation import guess_language

if TYPE_CHECKING:
    from anima.negation import Lang, View
    from anima.negation.score import Predictor, Sentence


def negspacy(lang: Lang | None, view: View = "right") -> Predictor | None:
    """Return negspaCy's own rules on a blank spaCy pipeline as a predictor; None where it is not installed.

    It judges spans, so every token is made one. Its clinical list of the language is used (a general one exists for
    English only and scores the same on CD-SCO); to the right, its cues that look back are left out. Tokens of the cues that
    it finds are dropped, as ours are.
    """
    if not (importlib.util.find_spec("spacy") and importlib.util.find_spec("negspacy")):
        return None

    def pipeline(code: Lang) -> tuple[Any, Any]:
        nlp = spacy.blank(code)
        nlp.add_pipe("sentencizer")
        wordings = dict(lists.termset(f"{code}_clinical").get_patterns())
        if view == "right":
            wordings["following_negations"] = []
        return nlp, negation.Negex(nlp, "negex", wordings, span_keys=["words"])

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # spaCy imports every plugin it finds installed
        # Not typed, and not needed to use this package: imported by name.
        spacy, negation, lists = map(importlib.import_module, ("spacy", "negspacy.negation", "negspacy.termsets"))
        ready = {code: pipeline(code) for code in ((lang,) if lang else ("en", "es"))}

    def predict(sentence: Sentence) -> set[int]:
        nlp, negex = ready[lang or guess_language(sentence.text)]
        doc = nlp(sentence.text)
        doc.spans["words"] = [doc[i : i + 1] for i in range(len(doc))]
        negex(doc)
        before, after, _ = negex.process_negations(doc)
        cue = {i for _, first, end in (*before, *after) for i in range(first, end)}
        denied = [
            (token.idx, token.idx + len(token))
            for token, span in zip(doc, doc.spans["words"], strict=True)
            if span._.negex and token.i not in cue
        ]
        return {i for i, (low, high) in enumerate(sentence.offsets) if any(a < high and low < b for a, b in denied)}

    return predict
