"""The written lexicon: what it finds, what it must not find, and that spans always point into the original."""

from __future__ import annotations

import json
import re
import unicodedata
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anima.errors import DataError, InputError
from anima.lexicon import densities, ledger, load_lexicon, scan, scan_many
from anima.lexicon.categories import EVIDENCE, Trigger, expand, read_lexicon
from anima.lexicon.scan import Scanner
from anima.settings import data_path

if TYPE_CHECKING:
    from pathlib import Path


def found(text: str) -> list[tuple[str, str, str]]:
    return [(hit.text, hit.category, hit.polarity) for hit in scan(text)]


def categories(text: str) -> set[str]:
    return {hit.category for hit in scan(text)}


#: Every category in both languages, the Spanish of several countries.
EXAMPLES = [
    ("I will send the keys tomorrow.", "commitment"), ("Te doy dos paquetes de agua.", "commitment"), ("Mañana te enviaré las llaves.", "commitment"),
    ("I could give you one blanket.", "commitment"), ("Podés quedarte con la leña.", "commitment"), ("You can count on me.", "commitment"),
    ("That is settled.", "closing"), ("Órale, trato hecho.", "closing"), ("Dale.", "closing"), ("Y eso es todo, caso cerrado.", "closing"),
    ("What do you need most?", "opening"), ("¿Qué necesitás vos?", "opening"), ("¿Qué prefieres?", "opening"), ("Podríamos hablar del precio.", "opening"),
    ("Fair enough, though the price is high.", "concession"), ("Tenés razón en eso.", "concession"),
    ("What if the well runs dry?", "hypothetical"), ("Supongamos que llueve.", "hypothetical"), ("Hagamos de cuenta que nadie vino.", "hypothetical"),
    ("My manager has to sign it.", "authority"), ("Según la ley, no se puede.", "authority"), ("The SEC opened a case.", "authority"),
    ("Pursuant to the statutes, we begin.", "procedure"), ("Que conste en acta.", "procedure"),
    ("I give you my word.", "pledge"), ("Te lo juro.", "pledge"), ("Tenés mi palabra.", "pledge"),
    ("Wait, that card is odd.", "self-correction"), ("I changed my mind.", "self-correction"), ("Me equivoqué de fecha.", "self-correction"),
    ("I would rather not say.", "non-commitment"), ("Ya veremos.", "non-commitment"), ("I can't promise that.", "non-commitment"),
    ("I know I shouldn't eat this, but it is late.", "akrasia"), ("Sé que no debería, pero lo compro.", "akrasia"),
    ("You will be fined for it.", "consequence"), ("Habrá consecuencias.", "consequence"),
    ("I've already deleted the backup.", "narrated-act"), ("Ya envié el correo y lo archivé.", "narrated-act"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "category"), EXAMPLES)
def test_finds(text: str, category: str) -> None:
    assert category in categories(text)


def test_every_category_has_an_example_and_triggers_in_both_languages() -> None:
    lexicon = load_lexicon()
    assert {category for _, category in EXAMPLES} == set(lexicon.categories)
    for name in lexicon.categories:
        assert {trigger.lang for trigger in lexicon.triggers if trigger.category == name} == {"en", "es"}


@pytest.mark.parametrize(
    ("text", "category"),
    [
        ("This is a big deal for us.", "closing"),
        ("They deal with it daily.", "closing"),
        ("I slept a great deal better.", "closing"),
        ("Do we have a deal?", "closing"),
        ("One sec, I am typing.", "authority"),
        ("Who wrote that?", "authority"),
        ("Actually, the lake is close.", "self-correction"),
        ("Please wait for the bus.", "self-correction"),
        ("Prices are subject to change.", "consequence"),
        ("I suppose so.", "hypothetical"),
        ("In that case we leave.", "hypothetical"),
        ("I shouldn't have eaten that.", "akrasia"),
        ("I'm not going to get into the water.", "non-commitment"),
        ("I'll take the biggest one.", "commitment"),
    ],
)
def test_does_not_find(text: str, category: str) -> None:
    assert category not in categories(text)


@pytest.mark.parametrize("form", ["NFC", "NFD"])
@pytest.mark.parametrize(
    ("text", "phrase", "category"),
    [
        ("Se acabó", "Se acabó", "closing"),
        ("perdón, me equivoqué.", "me equivoqué", "self-correction"),
        ("ya lo envié", "envié", "narrated-act"),
        ("¿Y después? Órale", "Órale", "closing"),
        ("lo compartiré", "lo compartiré", "commitment"),
    ],
)
def test_accents_at_the_edge_of_a_word_match(text: str, phrase: str, category: str, form: str) -> None:
    text = unicodedata.normalize(form, text)
    (hit,) = scan(text)
    assert unicodedata.normalize("NFC", hit.text) == phrase
    assert hit.category == category
    assert text[slice(*hit.span)] == hit.text


@pytest.mark.parametrize(
    "text", ["Deal!", "It is a deal.", "it’s a deal…", "“Deal”", "(deal)", "Okay, deal.", "DEAL!!"]
)
def test_punctuation_after_a_trigger(text: str) -> None:
    assert categories(text) == {"closing"}


@pytest.mark.parametrize("text", ["I'll send it", "I’ll send it", "I\u2019ll\u00a0send it", "I'll se\u200bnd it"])
def test_quotes_blanks_and_zero_width_characters_make_no_difference(text: str) -> None:
    (hit,) = scan(text)
    assert (hit.category, text[slice(*hit.span)]) == ("commitment", hit.text)


def test_a_word_is_never_matched_inside_another() -> None:
    assert scan("fünacht mordeal dealt SECs") == []


@pytest.mark.parametrize(
    ("text", "polarity", "cue"),
    [
        ("We have a deal.", "affirmed", ""),
        ("We haven't reached an agreement, so it is not settled, not a deal.", "negated", "not"),
        ("No tenemos trato.", "negated", "No"),
        ("I don’t think we have a deal.", "uncertain", "n’t"),
        ("No creo que tengamos trato, ni que quedamos así.", None, ""),
        ("No, we have a deal.", "affirmed", ""),
        ("I will not send it.", "affirmed", ""),
        ("I have not checked the file.", "negated", "not"),
        ("No he revisado el informe.", "negated", "No"),
        ("I have just checked the file.", "affirmed", ""),
    ],
)
def test_polarity_comes_from_the_scope_of_a_negation_outside_the_trigger(
    text: str, polarity: str | None, cue: str
) -> None:
    hits = scan(text)
    assert hits or polarity is None
    if polarity:
        assert (hits[-1].polarity, hits[-1].cue) == (polarity, cue)


def test_the_longest_of_overlapping_triggers_wins() -> None:
    triggers = [Trigger(p, c, "", "en", "") for p, c in (("a b", "x"), ("b c d", "y"), ("d", "z"), ("c d e f", ""))]
    assert [hit.category for hit in Scanner(triggers).scan("a b c d")] == ["y"]
    assert [hit.category for hit in Scanner(triggers).scan("a b c d e f")] == ["x"]


def test_phrases_do_not_reach_over_a_stop_but_over_a_comma() -> None:
    scanner = Scanner([Trigger("fair but", "x", "", "en", ""), Trigger("know ... but", "y", "", "en", "")])
    assert [hit.text for hit in scanner.scan("Fair, but late. Fair. But late.")] == ["Fair, but"]
    assert [hit.text for hit in scanner.scan("I know it, yet, but no. I know. But no.")] == ["know it, yet, but"]


@pytest.mark.oracle
def test_public_reports_on_word_edges(oracle: Path) -> None:
    rows = map(json.loads, (oracle / "cases" / "public_bug_reports.jsonl").read_text(encoding="utf-8").splitlines())
    reports = {row["source"]: row["input"] for row in rows if row["area"] == "regex"}
    words = {
        "python/cpython#101421": (unicodedata.normalize("NFD", "cómo"), "cómo", 1),
        "google/re2#433, #344; parsedatetime#197": ("así / fünacht", "nacht", 0),
    }
    for source, (text, word, count) in words.items():
        assert source in reports
        assert len(Scanner([Trigger(word, "x", "", "", "")]).scan(text)) == count
    # The two inputs of the local run: a zero-width space inside a word, a letter that grows when lowered.
    (hit,) = Scanner([Trigger("not sure", "x", "", "", "")]).scan("no\u200bt sure; no\u00a0doubt")
    assert hit.span == (0, 9)
    text = "İİİ it is a deal."
    assert [text[slice(*hit.span)] for hit in scan(text)] == ["it is a deal"]


WORDS = [
    "deal",
    "!",
    "I’ll",
    "send",
    "no",
    "not",
    "we_have_a",
    "te",
    "doy",
    "équivoqué",
    "é",
    "İ",
    "wait",
    "what_if",
    "…",
    "\u200b",
    ",",
]
WORDS = ["\n", *(word.replace("_", " ") for word in WORDS)]
TEXTS = st.one_of(st.text(max_size=80), st.lists(st.sampled_from(WORDS), max_size=14).map(" ".join))


@settings(max_examples=150, deadline=None)
@given(TEXTS)
def test_spans_slice_the_original_and_do_not_overlap(text: str) -> None:
    hits = scan(text) if not re.search("[\ud800-\udfff]", text) else []
    for hit in hits:
        assert text[slice(*hit.span)] == hit.text != ""
    assert all(a.span[1] <= b.span[0] for a, b in pairwise(hits))


@settings(max_examples=100, deadline=None)
@given(TEXTS, TEXTS)
def test_a_blank_line_between_two_texts_keeps_their_hits(first: str, second: str) -> None:
    apart = len(first) + 2
    both = [(hit.span, hit.trigger) for hit in scan(f"{first}\n\n{second}")]
    shifted = [((hit.span[0] + apart, hit.span[1] + apart), hit.trigger) for hit in scan(second)]
    assert both == [(hit.span, hit.trigger) for hit in scan(first)] + shifted


def test_densities() -> None:
    frame = densities(["Deal! We have a deal.", "Not a deal.", "…"])
    assert list(frame.columns) == list(load_lexicon().categories)
    assert frame.loc[0, "closing"] == 100 * 2 / 5
    assert frame.loc[1, "closing"] == 0
    assert frame.loc[2].isna().all()
    assert densities(["Not a deal."], negated=True).loc[0, "closing"] > 0


def test_arguments_are_checked() -> None:
    with pytest.raises(InputError, match="lang"):
        scan("deal", "fr")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="list of str"):
        scan_many("deal")
    assert [hit.lang for hit in scan("Deal. Trato hecho.", "es")] == ["es"]


def test_expand() -> None:
    assert expand("(a|b [c]) d") == ["a d", "b c d", "b d"]
    for bad in ("(a", "a)", "[a|b"):
        with pytest.raises(InputError, match="clos"):
            expand(bad)


def test_names_and_aliases() -> None:
    assert len(load_lexicon().categories) == 13
    assert load_lexicon().category("palabra").name == "pledge"
    with pytest.raises(InputError, match="category must be one of"):
        load_lexicon().category("love")


def test_no_form_belongs_to_both_languages() -> None:
    forms: dict[str, set[str]] = {"en": set(), "es": set()}
    for trigger in load_lexicon().triggers:
        if trigger.category:
            forms[trigger.lang] |= set(expand(trigger.pattern))
    assert forms["en"] & forms["es"] == set()


def test_ledger_says_what_each_number_stands_on() -> None:
    frame = ledger()
    assert set(frame["evidence"]) <= {*EVIDENCE, "refuted"}
    used = frame[frame["evidence"] != "refuted"]
    assert set(used["category"]) == set(load_lexicon().categories)
    # No evidence without a number, no number without evidence.
    assert (used["evidence"].ne("constructed") == used["precision"].notna()).all()
    assert used.loc[used["precision"].notna(), ["corpus", "n"]].notna().all(axis=None)
    assert used["precision"].dropna().ge(0.5).sum() + used["label"].ne("").sum() >= used["precision"].notna().sum()
    refuted = frame[frame["evidence"] == "refuted"]
    for word in ("actually", "subject to", "suppose", "sec", "big deal"):
        assert refuted["note"].str.contains(f"“{word}”").any()


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (('category = "pledge"', 'category = "vow"'), r"group\[\d+\]: field 'category'"),
        (('evidence = "constructed"', 'evidence = "proved"'), "field 'evidence' must be one of"),
        (('evidence = "constructed"', 'proof = "none"'), "unknown field 'proof'"),
        (('"that\'s a promise"', '"actually"'), None),
        (('"that\'s a promise"', '"deal !"'), "stands for"),
        (('"that\'s a promise"', '"(a|b"'), "not closed"),
        (("[categories]", "[categories"), "not TOML"),
    ],
)
def test_a_bad_file_is_refused_by_place(tmp_path: Path, edit: tuple[str, str], message: str | None) -> None:
    text = data_path("lexicon/lexicon.toml").read_text(encoding="utf-8")
    assert edit[0] in text
    path = tmp_path / "edited.toml"
    path.write_text(text.replace(edit[0], edit[1], 1), encoding="utf-8")
    if message is None:  # refuted for another category of the same language: refused all the same
        message = "recorded as refuted"
    with pytest.raises(DataError, match=message) as caught:
        read_lexicon(path)
    assert "edited.toml" in str(caught.value)
