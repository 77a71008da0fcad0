"""Commitments and ruptures: the traps of the earlier detector, and the published numbers."""

from __future__ import annotations

import json
import tomllib
import unicodedata

import pytest

from anima.errors import InputError
from anima.lexicon import commitments, measure_ruptures, ruptures
from anima.lexicon.acts import stem
from anima.settings import data_path
from anima.stats.agreement import share_estimate


def pairs(*texts: str) -> list[tuple[str, str]]:
    return [("ana", text) for text in texts]


CONTRADICTED = [
    (("I will send you the invoice.", "Fine day.", "I will not send you the invoice."), "denied"),
    (("I won't share the address.", "I shared the address with them."), "done"),
    (("I will keep the old photos.", "I deleted the old photos."), "undone"),
    (("I promise to paint the gate.", "The gate never got painted."), "denied"),
    (("Le devolveré el dinero.", "El dinero no fue devuelto."), "denied"),
    (("Voy a guardar los recibos.", "Borré los recibos."), "undone"),
    (("No le contaré el secreto a Luis.", "Le conté el secreto a Luis."), "done"),
]


@pytest.mark.parametrize(("texts", "rule"), CONTRADICTED)
def test_contradictions(texts: tuple[str, ...], rule: str) -> None:
    (found,) = ruptures(pairs(*texts))
    assert (found.commitment.turn, found.turn, found.rule) == (0, len(texts) - 1, rule)
    assert found.text == texts[-1]
    assert texts[0] in found.summary()
    json.dumps(found.to_dict())


@pytest.mark.parametrize(
    "texts",
    [
        ("I will give you two packages of food.", "You get two packages of food and no firewood."),
        ("I will bring the tent.", "No, I will bring the tent as I said."),
        ("I will send the form today.", "If I did not send the form today, they would close the file."),
        ("I will review your case.", 'He wrote "we will not review your case".'),
        ("I will review your case.", "Will I not review your case?"),
        ("I will send the form.", "I was wrong to say so: I will not send the form, I take it back."),
        ("I will paint the door on Monday.", "I will not paint the door on Tuesday."),
        ("I will keep the copy until you confirm.", "You confirmed, so I deleted the copy."),
        ("Le dejaré las llaves a la portera.", "No se las dejé al vecino, sino a la portera, las llaves."),
        ("I will send you the form.", "I do not like the weather here."),
    ],
)
def test_what_only_looks_like_a_contradiction(texts: tuple[str, ...]) -> None:
    assert ruptures(pairs(*texts)) == []


def test_nobody_breaks_the_promise_of_somebody_else() -> None:
    assert ruptures([("ana", "I will send the form."), ("ben", "I will not send the form.")]) == []


def test_commitment_fields() -> None:
    (made,) = commitments([{"speaker": "ana", "text": "Hello. I won't share your address."}])
    assert (made.act, made.negative, made.conditional, made.turn) == (stem("share"), True, False, 0)
    assert made.text == "I won't share your address."
    assert made.topic == (stem("address"),)
    assert commitments(pairs("I will need a coat.", "Will I send it?", "If I will send it, fine.")) == []


@pytest.mark.parametrize(
    "forms",
    [
        ("corregiré", "corregir", "corrigiendo", "corregido"),
        ("send", "sent", "sends", "sending"),
        ("devolveremos", "devuelta", "devolver"),
        ("borré", "borrar", "borraron", "borrarlos"),
        ("translate", "translated", "translating"),
        ("promise", "promised"),
    ],
)
def test_inflected_forms_share_a_stem(forms: tuple[str, ...]) -> None:
    assert len({stem(form) for form in forms}) == 1


def test_bad_turns_are_refused() -> None:
    with pytest.raises(InputError, match="turns item 1"):
        ruptures([("ana", "hello"), "hello"])
    with pytest.raises(InputError, match="item 0"):
        commitments([("ana", None)])
    assert ruptures([]) == []


@pytest.mark.parametrize("split", ["dev", "test"])
def test_published_numbers_are_what_the_code_gives(split: str) -> None:
    stored = tomllib.loads(data_path("lexicon/ruptures-measured.toml").read_text(encoding="utf-8"))[split]
    scores = measure_ruptures(split)  # type: ignore[arg-type]
    assert scores.n_dialogues == stored.pop("n_dialogues")
    for name, numbers in stored.items():
        estimate = getattr(scores, name)
        assert [estimate.value, estimate.low, estimate.high] == pytest.approx(numbers, abs=5e-4)


@pytest.mark.parametrize("split", ["dev", "test"])
def test_published_numbers_of_commitments_are_what_the_code_gives(split: str) -> None:
    stored = tomllib.loads(data_path("lexicon/ruptures-measured.toml").read_text(encoding="utf-8"))["commitments"][
        split
    ]
    rows = map(json.loads, data_path("lexicon/ruptures.jsonl").read_text(encoding="utf-8").splitlines())
    rows = [row for row in rows if row["split"] == split]
    gold = {(row["id"], item["turn"]) for row in rows for item in row["commitments"]}
    found = {(row["id"], item.turn) for row in rows for item in commitments(row["turns"])}
    for name, whole in (("precision", found), ("recall", gold)):
        share = share_estimate(len(gold & found), len(whole), name)
        assert [share.value, share.low, share.high] == pytest.approx(stored[name], abs=5e-4)


def test_decomposed_accents_change_nothing() -> None:
    texts = ("Enviaré el informe mañana.", "No enviaré el informe.")
    (found,) = ruptures(pairs(*(unicodedata.normalize("NFD", text) for text in texts)))
    assert (found.commitment.turn, found.turn) == (0, 1)


def test_arguments_are_checked() -> None:
    with pytest.raises(InputError, match="turns must be a list of pairs"):
        commitments(None)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="min_overlap"):
        ruptures(pairs("I will go."), min_overlap=2)
