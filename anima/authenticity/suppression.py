"""When the wording of a marker is there but does not count: inside a quotation or in the scope of a negation.

A simple, sound check on the clause that leads up to the wording. It errs towards letting a marker count: a negation
must stand in the same clause, within ten words, and must not be one of the pseudo-negations ("not only", "no doubt",
"nada menos que").
"""

from __future__ import annotations

import re
from bisect import bisect_right

_FENCE = re.compile(r"^[ \t]*(```|~~~).*?(?:^[ \t]*\1[ \t]*$|\Z)", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"`[^`\n]{1,400}`")
_GUILLEMETS = re.compile(r"«[^«»]{1,600}»")
#: A mark of feet or inches, as in 5", opens nothing.
_DOUBLE = re.compile(r'(?<!\d)"(?=\S)(?:[^"\n]|\n(?![ \t]{0,20}\n)){1,500}"')
_SINGLE_OPEN = re.compile(r"(?<![\w'])'(?=[\w¿¡(])(?!\d0s\b|em\b|til\b|tis\b|twas\b|cause\b|cos\b|n')", re.IGNORECASE)
_SINGLE_CLOSE = re.compile(r"(?<=[^\s'])'(?![\w'])")

_HARD = re.compile(
    r"[.!?…;:\n¿¡(]|\s[—–-]\s|—"
    r"|\b(?:but|yet|though|although|however|because|since|until|unless|before|while|whereas"
    r"|pero|hasta que|antes de|sino|aunque|porque|mientras|pues|mas)\b"
    r"|\b(?:and|so|y|e)\s(?=(?:it|that|this|what|you|i|we|there|es|era|eso|esa|ese|esta|este|esto|qué|tu|su|me|hay|la tuya)\b)"
)
_PSEUDO = re.compile(
    r"(?:\bno|\bnot|n't)\s(?:\w+\s){0,3}?(?:only|just|merely|simply|solely|s[oó]lo|solamente|únicamente)\b"
    r"|\bno\s(?:doubt|question|wonder|matter|less|surprise|worries|problem|hay duda|cabe duda|hay ninguna duda|me cabe duda|en vano|por nada"
    r"|es de extrañar|obstante|te preocupes|pasa nada)\b|\bnot\s(?:least|to mention)\b|n't\s(?:it|that|this)\b"
    r"|\bwithout\s(?:a\s|any\s)?(?:doubt|question|exaggerat\w+)\b"
    r"|\bsin\s(?:duda\w*|ninguna duda|lugar a dudas|exagerar|ir más lejos|embargo|rodeos|reparos|más|prisa|ambages)\b"
    r"|\bnothing\s(?:but|less than|short of)\b|\bnada\s(?:menos|más)\b|\bni más ni menos\b|\b(?:al|por lo|más o|a)\smenos\b"
    r"|\bnever\s(?:fails?|ceases?|stops?)\b|\bno\s(?:me\s)?deja\sde\b"
    r"|\b(?:can't|cannot|couldn't|can not)\s(?:help|deny|but|stress|overstate|wait|resist)\b"
    r"|\bno\s(?:se\s)?(?:puedo|puede|podemos|podría|cabe)\s(?:sino|menos|negar|evitar|dejar|resistir)\w*\b"
    # an alternative or a noun, not a denial
    r"|\b(?:whether or not|yes (?:or|and) no|sí (?:o|y) (?:un )?no|or (?:not|isn't|aren't|doesn't)|o (?:no|deja de)|un no|a no)\b"
    # a denial of part of the subject, not of the verb that follows
    r"|\b(?:not|no)\s(?:por|en|con|para|cuando|como|el|la|los|las|the|by|in|at|from|on)\b(?=[^,]*\b(?:is|are|was|makes|es|son|era|fue|sería)\s)"
    r"|\b(?:instead of|rather than|without|sin|en vez de|en lugar de|minus|menos)\b(?=[^,]*\b(?:is|are|was|makes|es|son|era|fue|sería)\s)"
)
_CUE = re.compile(
    r"\b(?:not|never|no|nor|neither|without|hardly|barely|scarcely|nothing|nobody|none|cannot|far from|anything but|instead of|rather than"
    r"|skip|spare|avoid|avoiding|refrain\w*|minus|ni|nunca|jamás|tampoco|sin|nada|ningun[oa]|ningún|nadie|lejos de|en vez de|en lugar de"
    r"|ahórr\w+|ahorr\w+|evit\w+|déj\w+ de|dej\w+ de|basta de|menos|(?:do|did|does|is|was|wo|ca|would|could|should)nt)\b|\b\w{1,12}n't\b"
)
_COMPARED = re.compile(r"\b(?:more|better|más|mejor)\b")
_UNSURPASSED = re.compile(
    r"\bthere(?:'s| is| are) (?:no|few|hardly)\b|\bno (?:better|more|hay|existe)\b|\bnever (?:heard|seen|had|read|met)\b"
    r"|\b(?:can't|cannot|couldn't) (?:think|imagine|ask|have)\b|\bnunca (?:me|he|había)\b|\bno se me ocurre\b"
)
_AFTER = re.compile(
    r",?\s(?:(?:this|that|it)\s(?:is|was|isn't|wasn't|ain't)(?:\snot)?\b|no\s(?:lo\s)?(?:es|era|fue|será|sería)\b)"
)
_NEGATED_AFTER = re.compile(r"\b(?:not|no|\w+n't)\b")
_REPORTED = re.compile(
    r"\b(?:you|they|he|she|people|everyone|your \w+)\s(?:once\s|just\s|also\s)?(?:said|says?|called?|calls|described|claim(?:ed|s)?)\s(?:that\s)?"
    r"(?:it|this|that|yours)\s?(?:'s|was|is|as)?\s?(?:an?|the|one)?\s?$"
    r"|\b(?:dijo|dijeron|dijiste|dice|dices|decís|llamó|llamaste|llamas)\sque\s(?:es|era|fue)\s(?:una?\s)?$"
)
#: A hit that opens with these is a clause of its own: a negation before it does not reach in.
_CONDITION = re.compile(r"(?:before|until|unless|without|if|when|mientras|hasta|sin|si|cuando|antes|primero|según)\b")
_REACH = 10
_LOOK_BACK = 160


def quoted_spans(text: str) -> list[tuple[int, int]]:
    """Return the spans of quotations and code in a normalised text: disjoint, in order, marks included.

    Straight double and single quotes, guillemets and backticks count (curly quotes are straight after normalisation). A
    quotation ends at the next mark of its kind; an apostrophe inside a word is no mark.
    """
    spans: list[tuple[int, int]] = []
    if "`" in text or "~~~" in text:
        spans += [match.span() for match in _FENCE.finditer(text)]
        spans += [match.span() for match in _CODE.finditer(text)]
    if "«" in text:
        spans += [match.span() for match in _GUILLEMETS.finditer(text)]
    if '"' in text:
        spans += [match.span() for match in _DOUBLE.finditer(text)]
    if "'" in text:
        spans += _single_quoted(text)
    return _united(spans)


def _single_quoted(text: str, limit: int = 200) -> list[tuple[int, int]]:
    closers = [match.end() for match in _SINGLE_CLOSE.finditer(text)]
    spans = []
    free = 0
    for match in _SINGLE_OPEN.finditer(text):
        at = bisect_right(closers, match.start() + 1)
        if match.start() < free or at == len(closers):
            continue
        end = closers[at]
        if end - match.start() <= limit and "\n" not in text[match.start() : end]:
            spans.append((match.start(), end))
            free = end
    return spans


def _united(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return ``spans`` sorted, overlapping ones joined; neighbours that merely touch stay apart."""
    joined: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if joined and start < joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((start, end))
    return joined


def enclosing(spans: list[tuple[int, int]], position: int) -> tuple[int, int] | None:
    """Return the one of the disjoint, sorted ``spans`` that holds ``position``, or None."""
    at = bisect_right(spans, position, key=lambda span: span[0]) - 1
    return spans[at] if at >= 0 and position < spans[at][1] else None


def negation_of(text: str, start: int, end: int) -> str:
    """Return the words that negate the wording of a marker, ``text[start:end]`` of a normalised text, or nothing."""
    hit = text[start:end].lower()
    if _CONDITION.match(hit):
        return ""
    clause, questioned = _clause(text[max(0, start - _LOOK_BACK) : start].lower())
    # "Isn't that a great question!", "¿No es una gran pregunta?": asked that way, the negation affirms.
    if not (questioned and clause.lstrip().startswith("no ")):
        bare = _PSEUDO.sub(lambda match: "_" * len(match[0]), clause)
        cues = list(_CUE.finditer(bare))
        if cues and len(bare[cues[-1].end() :].split()) <= _REACH:
            affirmed = _COMPARED.search(hit + bare[cues[-1].end() :]) and _UNSURPASSED.search(bare)
            if not affirmed:
                return cues[-1][0]
    match = _AFTER.match(text, end)
    if match and (found := _NEGATED_AFTER.search(match[0].lower())):
        return found[0]
    return ""


def reported(text: str, start: int) -> bool:
    """Tell whether somebody else's words lead up to ``start``: "you called it a …"."""
    return bool(_REPORTED.search(text[max(0, start - _LOOK_BACK) : start].lower()))


def _clause(left: str) -> tuple[str, bool]:
    """Return what of ``left`` belongs to the clause that goes on after it, and whether that clause began with an
    inverted mark.
    """
    cut, mark = 0, ""
    for match in _HARD.finditer(left):
        cut, mark = match.end(), match[0]
    clause = left[cut:]
    pieces = clause.split(",")
    if (
        len(pieces) >= 3
        and len(pieces[-2].split()) <= 6
        and len(pieces[-1].split()) <= 2
        and _parenthetical(pieces[-3])
    ):
        return pieces[-3] + pieces[-1], False  # "this is not, by any stretch, a …"
    return pieces[-1], len(pieces) == 1 and mark in ("¿", "¡")


def _parenthetical(before: str) -> bool:
    """Tell whether ``before`` breaks off right after a negated verb, so that a comma there does not end the clause."""
    return bool(re.search(r"(?:\bnot|n't|\bno (?:es|era|fue|sería)|\bnunca|\bjamás|\bnever|\btampoco es)\s?$", before))
