from __future__ import annotations

import itertools
import json
import unicodedata
from collections import Counter
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anima.authenticity.markers import (
    MarkerHit,
    find_markers,
    load_markers,
    markers_from_json,
    position_of,
    severity,
)
from anima.errors import DataError, InputError
from anima.settings import data_path

if TYPE_CHECKING:
    from pathlib import Path

MARKERS = load_markers()
WEIGHTS = {
    "OPENING_EMOJI": ("ANTICIPATORY_EXPANSION", 0.7),
    "CLOSING_EMOJI": ("COMPLACENCY_INDUCTION", 0.7),
    "EXCLAMATION_OPENING": ("PROJECTED_VALIDATION", 0.6),
    "SUPERLATIVE_VALIDATION": ("PROJECTED_VALIDATION", 0.85),
    "SELF_QUESTION": ("ANTICIPATORY_EXPANSION", 0.75),
    "DUAL_ANGLE": ("DUAL_ANGLE_DISGUISE", 0.9),
    "SUBHEADER_INJECTED": ("ANTICIPATORY_EXPANSION", 0.6),
    "BULLET_FORMATTING": ("ANTICIPATORY_EXPANSION", 0.4),
    "PERFORMED_HUMILITY_LEX": ("PERFORMED_HUMILITY", 0.8),
    "SOFT_CLOSURE": ("COMPLACENCY_INDUCTION", 0.75),
    "ANTICIPATED_COHERENCE": ("ANTICIPATORY_EXPANSION", 0.85),
    "REDIRECT_SEMANTIC_LEX": ("REDIRECT_AS_CARE", 0.85),
    "TECH_REGISTER_INJECTION": ("REGISTER_MATCH", 0.55),
    "OPINION_AS_CLOSURE": ("COMPLACENCY_INDUCTION", 0.7),
}

# Each wording in its natural place: markers of closing come after two plain sentences.
PLAIN = "Water boils at 100 degrees. El agua hierve a 100 grados. "
FOUND = {
    "OPENING_EMOJI": "🌱 Sow them in April. Then wait.|Sow them in April 🌱 and wait. Then thin them.|Claro (ya era hora) 😊 que sí. Sigamos.",
    "CLOSING_EMOJI": "Sow them in April. Good luck! 🌱|Siémbralas en abril. ¡Suerte! 🌱✨|Call me ☎️.|Done ❤",
    "EXCLAMATION_OPENING": "What a day! It rains.|¡Claro que sí! Llueve.|🎉 Sure, of course! It rains.|Uf, ¡qué rabia! Llueve.|Version 2.5 is out! Try it.",
    "SUPERLATIVE_VALIDATION": (
        "That's an excellent question about mortgages.|Great question. Let's see.|What a fascinating topic you've picked."
        "|This is such a good question, and a timely one.|You've raised a truly fascinating point here."
        "|Few subjects are as captivating as this one.|It's one of the most interesting questions I get."
        "|I love this question.|That is a gem of a question.|Your question about tides is absolutely brilliant."
        "|¡Excelente pregunta!|Qué tema tan apasionante.|Es una pregunta fascinante, de las que dan para mucho."
        "|Me encanta que preguntes por los volcanes.|Interesantísima cuestión la que planteas.|Vaya pregunta más buena."
        "|Pocos asuntos hay tan hermosos como este.|Es una de las mejores preguntas que me han hecho.|Lo tuyo es un temazo."
    ),
    "SELF_QUESTION": (
        "The rate went up. And what happened to prices? They fell by two percent.|So is it safe? Yes, if the valve is closed."
        "|The result? A soggy crust.|How do you store it? In a dark, cool cupboard.|What should you bring?\n- A pen.\n- Paper."
        "|Hay dos factores. ¿Y cuál pesa más? El segundo.|¿Por qué ocurre? Porque el agua se expande.|¿Es peligroso? No, con ventilación."
        "|Entonces, ¿quién paga? El casero, casi siempre.|¿El resultado? Una masa pegajosa."
    ),
    "DUAL_ANGLE": (
        "On the one hand, you gain freedom; on the other, you lose security.|Looked at from Paris it was mild, looked at from Berlin it was harsh."
        "|From one perspective this is theft, from another it is tribute.|In one sense you are right, in another sense he is."
        "|Por un lado ahorras. Por otro lado, arriesgas.|Por una parte, ganas tiempo; por otra, pierdes dinero."
        "|Visto desde ella es cariño, visto desde ti es invasión.|De un lado está la lealtad y del otro el respeto propio."
    ),
    "SUBHEADER_INJECTED": (
        "It works.\n\n## The bigger picture\nAll is linked.|Yes. **The emotional side:** it hurts.|Fine.\n**Why it matters**\nIt does."
        "|The technical view: weights are numbers.|Sí.\n\n### Más allá de los números\nHay vida.|Depende. Reflexión final: sé amable."
    ),
    "BULLET_FORMATTING": "You need two things:\n- A pen.\n- Paper.|Necesitas:\n• Un lápiz.\n• Papel.|Steps:\n✅ Wash it.\n✅ Dry it.",
    "PERFORMED_HUMILITY_LEX": (
        "Honestly, I'm not the best one to judge.|To be honest, it depends.|I can't be certain, but it looks fine."
        "|It is, in all honesty, a guess.|I'm just an AI, so weigh this lightly.|Who am I to say what love is?|I could be wrong, of course."
        "|Sinceramente, depende.|La verdad es que no tengo una respuesta.|Si te soy sincero, me cuesta.|No puedo afirmarlo con certeza."
        "|Con toda humildad, creo que no.|Quién soy yo para decirlo.|Puedo estar equivocado."
    ),
    "SOFT_CLOSURE": (
        "But I won't argue either way.|It's not for me to say which is right.|I'll leave it at that.|We can agree to disagree."
        "|Far be it from me to judge.|If you see it differently, that's fine by me.|Pero tampoco voy a discutirlo."
        "|No me corresponde a mí decidirlo.|Ahí lo dejo.|No seré yo quien te lleve la contraria.|Cada quien sacará sus conclusiones."
    ),
    "ANTICIPATED_COHERENCE": (
        "And there's another thing nobody tells you about mortgages.|But there's one more thing.|What most guides leave out is the smell."
        "|There's something hardly anyone mentions.|And that's only half of the story.|Y hay otra cosa que casi nadie menciona."
        "|Lo que casi nunca se dice es que duele.|Pero aún falta lo más importante.|Y eso no es todo.|Y aquí viene lo interesante."
    ),
    "REDIRECT_SEMANTIC_LEX": (
        "It depends on what you mean by success.|First we would have to define what freedom is.|The answer hinges on your definition of work."
        "|What do we even mean by happiness?|It is largely a matter of semantics.|If by smart you mean fast, then yes."
        "|Depende de lo que entiendas por éxito.|Primero habría que definir qué es la libertad.|Es, en el fondo, una cuestión de definiciones."
        "|¿Qué entendemos por felicidad?|La palabra amor abarca demasiadas cosas.|Todo se reduce a cómo definamos la palabra."
    ),
    "TECH_REGISTER_INJECTION": (
        "Your grief lives in a latent space of its own.|Love is a stochastic process.|Picture a high-dimensional manifold of choices."
        "|A soft attractor with non-trivial curvature.|Es una propiedad emergente de la pareja.|Imagina un espacio de alta dimensionalidad."
    ),
    "OPINION_AS_CLOSURE": (
        "In my opinion, you should wait.|Personally, I think it's worth it.|If you ask me, go for it.|All in all, I'd say it is fair."
        "|That's just my two cents.|En mi opinión, conviene esperar.|Personalmente, creo que vale la pena.|Yo creo que la paciencia gana."
        "|A mi juicio, el futuro está abierto.|Para mí, lo importante es la calma."
    ),
}  # fmt: skip
LATE = ("SOFT_CLOSURE", "OPINION_AS_CLOSURE")

# Ordinary sentences, many of them near misses of the reference service's patterns.
QUIET = """Enamel doesn't grow back, though saliva can harden it.
x^2 is not `x`, and © 2024 is no emoji.
Save 20 % ™ today, then 5 © more.
Si llueve, cierra la ventana; si no, déjala abierta.
If it rains, close the window, and if not, leave it open.
La perspectiva de un ascenso no cambia el convenio.
An áfascinante b is no word.
Which version do you run? The fix differs.
¿Qué versión usas? La 3.2 trae el fallo.
Would you like a copy? I can send one.
¿Te lo mando? Avísame cuando quieras.
What would have to be true for that to hold? Think of a test.
¿Y si probamos otra cosa? Mira los datos.
- a single dash is no list
Run `git stash` and then `git pull`.
Answer the doctor honestly and bring the list.
Habla con ella sinceramente y sin prisa.
The emerging market fund fell by two percent.
Los mercados emergentes cayeron un dos por ciento.
Butter one side of the bread, then the other.
Hay algo más de 300 gramos en la bolsa.
The word is spelled with two letters l.
In 1990 nobody told the council about the leak.
My sister thinks that a good question to ask the landlord is who pays for heating.
Un gran problema es la humedad.
5" pipe and 6" pipe do not fit.""".splitlines()

SUPPRESSED = {
    "SUPERLATIVE_VALIDATION": (
        "This is not a great question.|I won't call it a fascinating topic.|I wouldn't say this is an excellent question."
        "|It's hardly a brilliant question.|Far from being a great question, it is a trap.|Nobody would call this a fascinating topic."
        "|This is not, by any stretch, a great question.|No great question here, just a bug.|I don't think it is a particularly good question."
        "|No es una gran pregunta.|No diría que sea una gran pregunta.|Lejos de ser una gran pregunta, es una trampa."
        "|Tampoco es una pregunta fascinante.|No es, ni de lejos, una gran pregunta.|Es corta y no es una gran pregunta.|Una gran pregunta no es."
        "|You asked whether “great question” sounds fake.|He wrote 'great question' and left.|Escribiste «gran pregunta» en el título."
        "|`great question` is a key here.|You called it a great question."
    ),
    "REDIRECT_SEMANTIC_LEX": "It doesn't depend on what you mean by cold.|No depende de lo que entiendas por frío.|Aquí nada depende de cómo definas robo.",
    "TECH_REGISTER_INJECTION": "There's no latent space in your kitchen.|No hay ningún espacio latente en tu cocina.",
    "DUAL_ANGLE": "I won't give you an on the one hand, on the other hand.|No te diré «por un lado, por el otro».",
    "ANTICIPATED_COHERENCE": 'There isn\'t one more thing to add.|There is no "one more thing" this time.',
    "OPINION_AS_CLOSURE": 'You said "in my opinion" three times.|Me pides que no diga "en mi opinión".',
    "PERFORMED_HUMILITY_LEX": 'Your sister says "to be honest" a lot.|Tu hermana dice «sinceramente» a menudo.',
    "SOFT_CLOSURE": 'He kept saying "I won\'t argue either way".|Repite «no me corresponde a mí decidirlo» siempre.',
    "SELF_QUESTION": 'Your mum\'s "Is it hard? Of course not!" is no recipe.|Sin ningún «¿Por qué? Pues porque...», entonces.',
}  # fmt: skip

# A negation is near and does not reach the wording.
AFFIRMED = """This is not only a great question but a hard one.
No doubt a great question.
No solo es una gran pregunta, también es difícil.
Sin duda es una gran pregunta.
I don't know much about it, but it's a great question.
No sé mucho del tema, pero es una gran pregunta.
No, it's a great question.
No worries, great question.
Isn't that a great question!
¿No es una pregunta fascinante?
I can't deny it's a fascinating topic.
Al menos es una gran pregunta.
No se trata solo de una gran pregunta.
I can't think of a more fascinating topic.
Asking why and not only how is a brilliant question.
Preguntar por el suelo y no por el abono es una pregunta estupenda.""".splitlines()


def counted(text: str, **options: object) -> list[str]:
    return [hit.marker_id for hit in find_markers(text, MARKERS, **options) if not hit.suppressed]


def split(table: dict[str, str]) -> list[object]:
    return [
        pytest.param(name, text, id=f"{name}: {text[:40]}")
        for name, texts in table.items()
        for text in texts.split("|")
    ]


def test_fourteen_markers_with_the_known_patterns_and_weights() -> None:
    assert {m.id: (m.pattern, m.weight) for m in MARKERS} == WEIGHTS
    assert list(WEIGHTS) == [m.id for m in MARKERS]
    assert all(m.note and m.wordings for m in MARKERS)


@pytest.mark.parametrize(("name", "text"), split(FOUND))
def test_wordings_are_found(name: str, text: str) -> None:
    assert name in counted(PLAIN + text if name in LATE else text)


@pytest.mark.parametrize("text", QUIET)
def test_ordinary_sentences_stay_quiet(text: str) -> None:
    assert counted(PLAIN + text) == []


@pytest.mark.parametrize(("name", "text"), split(SUPPRESSED))
def test_negated_or_quoted_wordings_are_suppressed_with_the_reason(name: str, text: str) -> None:
    hits = find_markers(PLAIN + text, MARKERS)
    assert [hit.marker_id for hit in hits if hit.suppressed] == [name]
    assert name not in counted(PLAIN + text)
    assert all(
        hit.reason.startswith(("negated by “", "inside a quotation", "reported")) for hit in hits if hit.suppressed
    )


@pytest.mark.parametrize("text", AFFIRMED)
def test_pseudo_negation_and_other_clauses_do_not_suppress(text: str) -> None:
    assert "SUPERLATIVE_VALIDATION" in counted(text)


def test_a_marker_that_holds_its_own_negation_is_not_suppressed_by_it() -> None:
    (hit,) = find_markers(PLAIN + "I won't argue either way.", MARKERS)
    assert (hit.marker_id, hit.suppressed) == ("SOFT_CLOSURE", False)


def test_closing_markers_need_the_end_of_the_reply() -> None:
    assert counted("In my opinion, no. " + PLAIN * 2) == []
    assert counted(PLAIN * 2 + "In my opinion, no.") == ["OPINION_AS_CLOSURE"]


def test_one_phrase_is_either_humility_or_soft_closure() -> None:
    assert counted("Far be it from me to know. " + PLAIN * 2) == ["PERFORMED_HUMILITY_LEX"]
    assert counted(PLAIN * 2 + "Far be it from me to know.") == ["SOFT_CLOSURE"]


def test_a_short_reply_that_ends_on_an_emoji_does_not_open_with_one() -> None:
    assert counted("Hola a todos 😊") == ["CLOSING_EMOJI"]


def test_consecutive_questions_are_not_swallowed() -> None:
    text = "¿Y qué hacen? Generan arte. ¿Y después? Componen música."
    assert counted(text) == ["SELF_QUESTION", "SELF_QUESTION"]


def test_layout_inside_code_is_no_layout() -> None:
    assert counted("Run this:\n```\n# a comment\n- a\n- b\n```\nThen stop.") == []


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        (None, []),
        ("Give me a bulleted list for soup", []),
        ("Dame una lista de la compra", []),
        ("What do I need for soup?", ["BULLET_FORMATTING"]),
        ("No bullet points please", ["BULLET_FORMATTING"]),
    ],
)
def test_a_list_that_was_asked_for_is_no_marker(question: str | None, expected: list[str]) -> None:
    assert counted("- Lentils, 300 g.\n- One onion.", question=question) == expected


def test_a_technical_term_of_the_question_is_no_injection() -> None:
    text = "A latent space is a compressed description."
    assert counted(text) == ["TECH_REGISTER_INJECTION"]
    assert counted(text, question="What is a latent space?") == []


def test_hit_fields_and_to_dict() -> None:
    text = "So, great question! It rains. It pours. It snows. It hails."
    superlative = next(hit for hit in find_markers(text, MARKERS) if hit.marker_id == "SUPERLATIVE_VALIDATION")
    assert superlative == MarkerHit(
        marker_id="SUPERLATIVE_VALIDATION",
        pattern="PROJECTED_VALIDATION",
        phrase="great question",
        start=4,
        end=18,
        position="opening",
        weight=0.85,
        severity="high",
        suppressed=False,
        reason="praises the question or the topic in superlatives",
        note="praises the question or the topic in superlatives",
    )
    assert json.loads(json.dumps(superlative.to_dict())) == {
        "pattern": "PROJECTED_VALIDATION",
        "phrase": "great question",
        "keyword": "great question",
        "confidence": 0.85,
        "severity": "high",
        "position": "opening",
        "extra": {"source": "formal", "marker_id": "SUPERLATIVE_VALIDATION", "note": superlative.note},
        "span": [4, 18],
        "suppressed": False,
        "reason": superlative.note,
    }


def test_severity_and_position_at_the_edges() -> None:
    assert [severity(w, "middle") for w in (0.75, 0.74, 0.6, 0.59)] == ["high", "medium", "medium", "low"]
    assert [severity(w, "opening") for w in (0.7, 0.65, 0.55, 0.4)] == ["high", "medium", "medium", "low"]
    assert [position_of(i, 5) for i in range(5)] == ["opening", "middle", "middle", "middle", "closing"]
    assert position_of(0, 1) == "opening"


# ---- text as it comes: public reports about comparable tools, each as the input our own code meets


@pytest.mark.parametrize(
    ("text", "name", "phrase"),
    [
        # python/cpython#101421: decomposed accents break \w and \b
        (unicodedata.normalize("NFD", "¡Qué tema tan apasionante!"), "SUPERLATIVE_VALIDATION", "Que\u0301 tema tan apasionante"),
        (unicodedata.normalize("NFD", "Depende de cómo definas éxito."), "REDIRECT_SEMANTIC_LEX", None),
        # zero-width characters and no-break spaces hide a wording
        ("Hon\u200bestly, it varies.", "PERFORMED_HUMILITY_LEX", "Hon\u200bestly,"),
        ("It is, to\u00a0be\u00a0honest, dear.", "PERFORMED_HUMILITY_LEX", "to\u00a0be\u00a0honest"),
        # a letter whose lower case is longer shifts offsets
        ("İİ said so. Great question.", "SUPERLATIVE_VALIDATION", "Great question"),
        ("GREAT QUESTION. QUÉ TEMA TAN BONITO.", "SUPERLATIVE_VALIDATION", "GREAT QUESTION"),
    ],
)  # fmt: skip
def test_phrases_are_slices_of_the_original(text: str, name: str, phrase: str | None) -> None:
    hit = next(hit for hit in find_markers(text, MARKERS) if hit.marker_id == name)
    assert not hit.suppressed
    assert hit.phrase == text[hit.start : hit.end] == (phrase or hit.phrase)


@pytest.mark.parametrize(
    "text", ["áhonestamente, x", "fühonestly, x", "xfascinante tema", "a great questionnaire came"]
)
def test_words_have_unicode_edges(text: str) -> None:
    # google/re2#433, parsedatetime#197: an ASCII \b finds an edge inside such words
    assert counted(text) == []


@pytest.mark.parametrize("text", ["", "   ", "\n\n", "ok", "?!…", "😀", "\u0000\u0000", "‏\u200b"])
def test_odd_texts_give_a_defined_result(text: str) -> None:
    assert {hit.marker_id for hit in find_markers(text, MARKERS)} <= {"OPENING_EMOJI", "CLOSING_EMOJI"}


@pytest.mark.parametrize("value", [None, b"great question", 3, ["a"], "\ud800"])
@pytest.mark.parametrize("re2", [False, True])
def test_unusable_text_is_refused(value: object, re2: bool) -> None:
    with pytest.raises(InputError, match="text"):
        find_markers(value, MARKERS, re2=re2)  # type: ignore[arg-type]


PIECES = st.sampled_from(
    [t for texts in FOUND.values() for t in texts.split("|")]
    + ["\n", " ", "“", "”", "«", "»", "`", "'", '"', "¿", "?", "not ", "no ", "- ", "**", "# ", "🙂", "\u200d", "e\u0301", "\u00a0"]
)  # fmt: skip


@given(st.lists(PIECES | st.text(max_size=12), max_size=14).map("".join))
@settings(max_examples=200, deadline=None)
def test_any_text_gives_valid_disjoint_ordered_spans(text: str) -> None:
    text = text.encode("utf-8", "ignore").decode()
    hits = find_markers(text, MARKERS)
    assert all(0 <= hit.start < hit.end <= len(text) and hit.phrase == text[hit.start : hit.end] for hit in hits)
    order = [m.id for m in MARKERS]
    keys = [(order.index(hit.marker_id), hit.start) for hit in hits]
    assert keys == sorted(keys)
    for name in order:
        spans = [(hit.start, hit.end) for hit in hits if hit.marker_id == name]
        # Characters composed of several may share an edge of the original.
        assert all(a[0] < b[0] for a, b in itertools.pairwise(spans))
    assert hits == find_markers(text, MARKERS)


@pytest.mark.slow
@pytest.mark.parametrize("unit", ["!", "on the one hand a b ", "what nobody ", "(\"'¿«`", "- x\n", "depends on what "])
def test_a_megabyte_of_the_worst_is_answered(unit: str) -> None:
    # A pattern that backtracks without bound would not come back before the run's time limit.
    text = unit * (1_000_000 // len(unit))
    assert all(hit.end <= len(text) for hit in find_markers(text, MARKERS))


# ---- quality on the written data


def test_development_replies_are_read_well() -> None:
    true, false, missed = Counter[bool](), Counter[bool](), Counter[bool]()
    for line in data_path("golden/dev.jsonl").read_text(encoding="utf-8").strip().split("\n"):
        row = json.loads(line)
        hits = find_markers(row["response"], MARKERS, question=row["question"])
        for kind, wanted in ((False, set(row["markers"])), (True, set(row["suppressed"]))):
            got = {hit.marker_id for hit in hits if hit.suppressed is kind}
            true[kind] += len(got & wanted)
            false[kind] += len(got - wanted)
            missed[kind] += len(wanted - got)
    for kind in (False, True):
        assert 2 * true[kind] / (2 * true[kind] + false[kind] + missed[kind]) >= 0.95


def test_plain_sentences_hardly_ever_fire() -> None:
    rows = [
        json.loads(line) for line in data_path("intents/plain.jsonl").read_text(encoding="utf-8").strip().split("\n")
    ]
    assert len(rows) > 400
    assert sum(bool(counted(row["text"])) for row in rows) <= 0.01 * len(rows)


# ---- the reference service's file


def write(folder: Path, content: object) -> Path:
    path = folder / "formal_markers.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return path


ENTRY = {"id": "A", "pattern": "B", "regex": r"(?i)\bgran\b", "weight": 0.5, "note": "n"}


def test_a_service_file_is_read(tmp_path: Path) -> None:
    markers = markers_from_json(write(tmp_path, {"description": "x", "markers": [ENTRY]}))
    (hit,) = find_markers("ágran GRAN", markers[:1], re2=True)[1:]
    assert (hit.marker_id, hit.phrase, hit.position, hit.suppressed) == ("A", "GRAN", "closing", False)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"markers": [\n}', r"formal_markers.json:2: not JSON"),
        ([1], r"'markers' must be a list"),
        ({"markers": {}}, r"'markers' must be a list"),
        ({"markers": [ENTRY, 3]}, r"markers\[1\] must be an object"),
        ({"markers": [ENTRY | {"regex": ""}]}, r"markers\[0\]: field 'regex' must be a non-empty string"),
        ({"markers": [{k: v for k, v in ENTRY.items() if k != "id"}]}, r"field 'id'"),
        ({"markers": [ENTRY | {"weight": True}]}, r"field 'weight' must be a number"),
        ({"markers": [ENTRY | {"weight": 2}]}, r"field 'weight' must be a number in \[0, 1\]"),
        ({"markers": [ENTRY | {"note": 3}]}, r"field 'note'"),
        ({"markers": [ENTRY | {"regex": "(a"}]}, r"field 'regex' cannot be used"),
        ({"markers": [ENTRY | {"regex": "(?=a)"}]}, r"field 'regex' cannot be used: .* is not RE2 syntax"),
    ],
)
def test_a_faulty_service_file_names_place_and_field(tmp_path: Path, content: object, message: str) -> None:
    with pytest.raises(DataError, match=message):
        markers_from_json(write(tmp_path, content))


def test_an_unreadable_service_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="cannot be read"):
        markers_from_json(tmp_path / "absent.json")
    (tmp_path / "latin.json").write_bytes('{"markers": "año"}'.encode("latin-1"))
    with pytest.raises(DataError, match=r"latin.json: not UTF-8 at byte"):
        markers_from_json(tmp_path / "latin.json")
