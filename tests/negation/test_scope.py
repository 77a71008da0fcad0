"""Scopes of negation on written examples, and what must hold for any text."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anima.errors import InputError
from anima.negation import LANGUAGES, guess_language, scopes, to_frame


def denied(text: str, lang: str | None = None, **options) -> str:
    """Return the words of all scopes, in order of the text."""
    spans = sorted({span for scope in scopes(text, lang, **options) for span in scope.tokens})
    return " ".join(text[low:high] for low, high in spans)


EXAMPLES = [
    # local, contraction, determiner, pronoun, preposition
    ("en", "The clerk never signed our form.", "signed our form"),
    ("en", "They won't open the cellar tonight.", "open the cellar tonight"),
    ("en", "I cannot carry two tents.", "carry two tents"),
    ("en", "Bring four blankets and no matches, thanks.", "matches"),
    ("en", "Nobody in the village heard the bell.", "in the village heard the bell"),
    ("en", "No one in the village heard it.", "one in the village heard it"),
    ("en", "None of the lamps was lit.", "of the lamps was lit"),
    ("en", "He left without paying the bill and took the train.", "paying the bill"),
    ("es", "La jefa nunca leyó nuestra carta.", "leyó nuestra carta"),
    ("es", "Nadie en el pueblo oyó la campana.", "en el pueblo oyó la campana"),
    ("es", "Tampoco vino el cartero.", "vino el cartero"),
    ("es", "Salió sin pagar la cuenta y tomó el tren.", "pagar la cuenta"),
    ("es", "Ningún vecino oyó la campana.", "vecino oyó la campana"),
    # adversatives, consequences, coordinated clauses, commas
    ("en", "We did not buy the boat, but we rented a canoe.", "buy the boat"),
    ("en", "She did not wait, however she left a note.", "wait"),
    ("en", "They never met again, so she sold the shop.", "met again"),
    ("en", "I did not lock the shed and he noticed it.", "lock the shed"),
    ("en", "It is not the roof but the cellar.", "the roof"),
    ("es", "No compramos la barca, pero alquilamos una canoa.", "compramos la barca"),
    ("es", "No cerré el cobertizo y él lo notó.", "cerré el cobertizo"),
    ("es", "No es el techo sino el sótano.", "es el techo"),
    ("es", "No quiero que vendas la tienda, así que espera.", "quiero que vendas la tienda"),
    # lists, "neither … nor", "ni … ni", negative agreement
    ("en", "No cough, rash, or nausea.", "cough rash or nausea"),
    ("en", "We have no bread, no milk and no eggs.", "bread milk eggs"),
    ("en", "Neither the cook nor the guest saw the smoke.", "the cook the guest saw the smoke"),
    ("es", "No tengo tos, mareo ni náuseas.", "tengo tos mareo ni náuseas"),
    ("es", "Ni la cocinera ni el huésped vieron el humo.", "la cocinera el huésped vieron el humo"),
    ("es", "No llegó nadie a la fiesta.", "llegó nadie a la fiesta"),
    # complement clauses, fronted and relative clauses, interruptions
    ("en", "I don't think that the board will agree.", "think that the board will agree"),
    ("en", "She did not mention that the bridge was closed.", "mention"),
    ("en", "If you don't want the rope I will keep it.", "want the rope"),
    ("en", "The man who did not pay is my uncle.", "pay"),
    ("en", "I was not, however, afraid of him.", "afraid of him"),
    ("en", "You did not hear, madam, that we had closed.", "hear that we had closed"),
    ("es", "No creo que la junta acepte.", "creo que la junta acepte"),
    ("es", "No dijo que el puente estuviera cerrado.", "dijo"),
    # denying nothing: answers, tags, rhetorical questions, pseudo-negation
    ("en", "No, I will take the red one.", ""),
    ("en", "No I will take the red one.", ""),
    ("en", "You like it, don't you?", ""),
    ("en", "Isn't that a lovely garden!", ""),
    ("en", "No wonder the dog is tired.", ""),
    ("en", "There is no doubt that she wrote it.", ""),
    ("en", "Not only did he call, he also came.", ""),
    ("en", "We can't wait to see you.", ""),
    ("en", "Nothing but rain fell all week.", ""),
    ("en", "Room no. 12 is free.", ""),
    ("es", "No, voy a tomar el rojo.", ""),
    ("es", "No solo llamó sino que también vino.", ""),
    ("es", "Sin duda lo escribió ella.", ""),
    ("es", "Sin embargo vino.", ""),
    ("es", "Está cerrado, ¿no?", ""),
    # double negation, hedges
    ("en", "It isn't true that he never called.", "true"),
    ("es", "No es cierto que no venga.", "es cierto"),
    ("es", "Termina sin clara ventaja.", ""),
    # affixes: the word is cue, what it qualifies is scope
    ("en", "It was an unexpected visit of the mayor.", "visit of the mayor"),
    ("en", "The visit was unpleasant and long.", ""),
    # abbreviations do not end a sentence; sentence ends do
    ("en", "I never met Mr. Poole in town. He writes.", "met Mr Poole in town"),
    # chat without apostrophes
    ("en", "dont need any wood", "need any wood"),
]


@pytest.mark.parametrize(("lang", "text", "expected"), EXAMPLES, ids=[text for _, text, _ in EXAMPLES])
def test_written_examples(lang: str, text: str, expected: str) -> None:
    assert denied(text, lang) == expected
    assert denied(text) == expected, "the guessed language gives another answer"


def test_curly_apostrophes_and_capitals_change_nothing() -> None:
    # cjhutto/vaderSentiment#66 and #46
    straight, curly = scopes("We can't agree."), scopes("We can’t agree.")
    assert [(s.span, s.rule) for s in straight] == [(s.span, s.rule) for s in curly]
    assert curly[0].cue == "n’t"
    assert denied("NOT BAD AT ALL") == "BAD AT ALL"


def test_adjacent_negations_cancel_each_other() -> None:
    found = scopes("We don't not care.")
    assert [scope.double for scope in found] == [True, True]
    assert denied("We don't not care.") == ""
    assert all(scope.double for scope in scopes("The room was not unpleasant."))


def test_an_answer_denies_its_label() -> None:
    # jenojp/negspacy#44
    (scope,) = scopes("Penicillin allergy: No")
    assert (scope.direction, scope.text, scope.rule) == ("left", "Penicillin allergy", "answer")


def test_full_view_adds_the_subject() -> None:
    (scope,) = scopes("I think that the old clerk will not sign it.", view="full")
    assert scope.text == "the old clerk will not sign it"
    assert scope.direction == "both"
    assert denied("He came and did not sign.", view="full") == "He did sign"
    assert denied("Why did you not sign?", view="full") == "Why did you sign"


def test_affixes_are_optional() -> None:
    text = "An unknown man left."
    assert [s.kind for s in scopes(text)] == ["affix"]
    assert scopes(text, affixal=False) == []
    assert scopes("No sirve.", "es", affixal=True)[0].cue == "No"


def test_scope_knows_what_ended_it() -> None:
    (scope,) = scopes("She did not wait, but he did.")
    told = (scope.kind, scope.rule, scope.terminator, scope.direction, scope.lang)
    assert told == ("particle", "comma", ",", "right", "en")
    assert scope.covers(*scope.span)
    assert not scope.covers(0, 3)
    assert scope.summary() == "“not” denies “wait” (comma)."


def test_results_are_tables_and_json() -> None:
    found = scopes("I never saw it. I <b>didn't</b> ask.")
    frame = to_frame(found)
    assert list(frame["cue"]) == ["never", "n't"]
    assert list(to_frame([]).columns) == list(frame.columns)
    assert json.loads(json.dumps(found[0].to_dict()))["tokens"] == [list(token) for token in found[0].tokens]
    assert len(found[0].to_frame()) == 1
    assert "<b>" not in found[1]._repr_html_()


def test_offsets_are_those_of_the_original() -> None:
    text = "Bien\u200b: e\u0301l no vendra\u0301 man\u0303ana."
    (scope,) = scopes(text)
    assert text[slice(*scope.span)] == scope.text == "vendra\u0301 man\u0303ana"


@pytest.mark.parametrize(
    ("text", "lang"),
    [
        ("No puedo esperar", "es"),
        ("I can't wait", "en"),
        ("", "en"),
        ("¿no?", "es"),
        ("No.", "en"),
        ("12:30", "en"),
        ("sin mí", "es"),
    ],
)
def test_language_is_guessed(text: str, lang: str) -> None:
    assert guess_language(text) == lang


def test_bad_arguments_are_named() -> None:
    with pytest.raises(InputError, match="lang must be one of 'en', 'es', got 'de'"):
        scopes("nein", "de")
    with pytest.raises(InputError, match="view must be one of"):
        scopes("no", view="left")
    with pytest.raises(InputError, match="text is None"):
        scopes(None)


_WORDS = """not no never nor n't don't neither none without nothing un unhappy careless no. 7 : ; , . ? ! ¿ ( ) " '' `` -- and or but that which
who if I you it the a man is had will said sir Mr. for so because of in para ni sin nunca nadie que y por con se la el es fue claro descartar hablando pero
’ \u200b e\u0301 İ ß 𝔸"""
WORDS = st.sampled_from([*_WORDS.split(), "\n", " "])
TEXTS = st.one_of(st.text(max_size=60), st.lists(WORDS, max_size=25).map(" ".join))


@settings(max_examples=400, deadline=None)
@given(text=TEXTS, lang=st.sampled_from([None, *LANGUAGES]), view=st.sampled_from(["right", "full"]))
def test_scopes_are_sound_on_any_text(text: str, lang: str | None, view: str) -> None:
    found = scopes(text, lang, view=view)
    assert [s.cue_span for s in found] == sorted(s.cue_span for s in found)
    for scope in found:
        low, high = scope.cue_span
        assert 0 <= low < high <= len(text)
        assert text[low:high] == scope.cue
        assert text[slice(*scope.span)] == scope.text
        assert list(scope.tokens) == sorted(set(scope.tokens))
        assert all(a < b for a, b in scope.tokens)
        assert bool(scope.tokens) == (scope.direction != "none")
        assert all(b <= low or a >= high or scope.kind == "affix" for a, b in scope.tokens), (
            "a cue inside its own scope"
        )
        if scope.tokens:
            assert scope.span == (scope.tokens[0][0], scope.tokens[-1][1])
        if view == "right" and scope.direction == "right":
            assert scope.tokens[0][0] >= high


@pytest.mark.parametrize("lang", LANGUAGES)
def test_reach_is_bounded_so_that_time_is_linear(lang: str) -> None:
    for scope in scopes("no word " * 2000 if lang == "es" else "not word " * 2000, lang, view="full"):
        assert len(scope.tokens) <= 400


@pytest.mark.parametrize(
    ("text", "denied"), [("No-one came to see it.", "came to see it"), ("I don´t go there.", "go there")]
)
def test_spellings_of_chats(text, denied):
    (found,) = scopes(text, "en")
    assert found.text == denied


@pytest.mark.parametrize("value", [None, 5, [], b"a"])
def test_what_is_no_text_is_named(value: object) -> None:
    for function in (guess_language, scopes):
        with pytest.raises(InputError, match=r"^text (is|must be)"):
            function(value)  # type: ignore[operator]
    with pytest.raises(InputError, match="affixal must be True or False, got str 'no'"):
        scopes("unhappy", affixal="no")  # type: ignore[arg-type]
