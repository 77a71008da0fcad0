"""The widgets without a browser: what their controls do, and what they leave where no kernel runs."""

from __future__ import annotations

import asyncio
import errno
import json
import re
from dataclasses import replace
from typing import TYPE_CHECKING

import nbformat
import pytest

import anima
from anima.authenticity import Instrument, Settings
from anima.corpora import load_corpus
from anima.detectors import Majority, TfidfHead, cross_validate
from anima.errors import InputError
from anima.stats import cohen_kappa
from anima.widgets import Explorer, LabellingSession, LabellingWidget, browse, compare, filter_utterances

if TYPE_CHECKING:
    from pathlib import Path

REPLY = "Great question! Water boils at 100 degrees Celsius. I hope this helps, let me know!"
VIEW = "application/vnd.jupyter.widget-view+json"


def bundle_of(widget) -> dict:
    found = widget._repr_mimebundle_()
    return found[0] if isinstance(found, tuple) else found


@pytest.fixture(scope="module")
def corpus():
    return load_corpus("casino", sample=True)


@pytest.fixture(scope="module")
def crossval(corpus):
    frame = corpus.labelled("strategy")
    return cross_validate([Majority(), TfidfHead()], frame, ["small-talk", "no-need"], folds=3, n_resamples=50)


# Explorer


def test_explorer_shows_what_the_api_says() -> None:
    explorer = Explorer(REPLY)
    assert explorer.analysis.to_dict() == anima.analyze(REPLY).to_dict()
    assert explorer.instrument is explorer.default
    assert explorer.flips.summary() == "Nothing flips: all 3 sentences are read as by default."
    explorer.reply.value = "Iron melts at 1538 degrees."
    assert explorer.analysis.chain == ("UNCLASSIFIED",)
    explorer.pick.value = explorer.replies["dev-es-01"]
    assert explorer.analysis.response == explorer.replies["dev-es-01"] == explorer.reply.value
    explorer.reply.value = "  "
    assert explorer.flips.summary() == "There is no sentence to read."


def test_threshold_and_classifier_flip_sentences() -> None:
    explorer = Explorer(REPLY)
    assert explorer.threshold.disabled
    explorer.threshold.value = 0.9
    assert explorer.instrument is explorer.default, "the threshold is none of the head's business"
    explorer.classifier.value = "centroid"
    assert not explorer.threshold.disabled
    assert set(explorer.analysis.chain) == {"UNCLASSIFIED"}
    want = anima.analyze(REPLY, classifier="centroid", intent_threshold=0.9)
    assert explorer.analysis.to_dict() == want.to_dict()
    before = anima.analyze(REPLY)
    moved = [i + 1 for i, pair in enumerate(zip(before.chain, want.chain, strict=True)) if len(set(pair)) == 2]
    assert explorer.flips.sentences["sentence"].tolist() == moved != []
    assert "VALIDATE → plain" in explorer.flips.summary()
    assert "predictability" in explorer.flips.figures["figure"].tolist()
    explorer.reset.click()
    assert explorer.flips.summary().startswith("Nothing flips")


def test_the_pole_is_named_in_english_and_one_sentence_is_one() -> None:
    one = anima.analyze("Great question!")
    flips = compare(one, replace(one, pole=replace(one.pole, label="frontera_edge")))
    assert flips.figures["after"].tolist() == ["undecidable edge"]
    assert "frontera_edge" not in flips.summary()
    assert compare(one, one).summary() == "Nothing flips: the sentence is read as by default."


def test_compare_names_both_readings() -> None:
    flips = compare(anima.analyze(REPLY), anima.analyze(REPLY, classifier="centroid", intent_threshold=0.9))
    row = flips.to_frame().iloc[0]
    assert (row["phrase"], row["before"], row["after"]) == ("Great question!", "VALIDATE", "UNCLASSIFIED")
    assert "<table" in flips._repr_html_()
    assert json.dumps(flips.to_dict())


def test_an_embedder_that_is_away_is_said_on_the_screen() -> None:
    explorer = Explorer(REPLY, embedders=["ollama:nothing@http://127.0.0.1:9"])
    explorer.embedder.value = "ollama:nothing@http://127.0.0.1:9"
    assert explorer.flips is None
    assert 'role="alert"' in explorer._status.value
    assert "127.0.0.1:9" in explorer._status.value
    explorer.embedder.value = ""
    assert explorer.flips is not None


def test_a_threshold_of_the_default_waits_for_a_classifier_that_cuts() -> None:
    default = Instrument(None, anima.instrument().embedder, Settings(intent_threshold=0.9))
    explorer = Explorer(REPLY, instrument=default, embedders=["bundled"])
    explorer.embedder.value = "bundled"
    assert explorer.flips is not None, explorer._status.value
    assert explorer.instrument.settings == default.settings
    explorer.classifier.value = "centroid"
    assert set(explorer.analysis.chain) == {"UNCLASSIFIED"}


def test_changes_wait_for_a_pause_while_a_loop_runs() -> None:
    explorer = Explorer(REPLY)
    seen = []

    async def type_quickly() -> None:
        explorer._shown.observe(lambda _: seen.append(explorer.analysis.response), "value")
        for i in range(1, 20):
            explorer.reply.value = "Iron melts at 1538 degrees."[:i]
        assert explorer.analysis.response == REPLY
        while not seen:
            await asyncio.sleep(0.02)

    asyncio.run(type_quickly())
    assert seen == ["Iron melts at 1538 "[:19]]


# Browser


def test_filter_finds_labels_and_errors(corpus, crossval) -> None:
    def ids(**options) -> set[str]:
        return set(filter_utterances(corpus, scheme="strategy", **options)["utterance_id"])

    labels = corpus.labels
    of_label = set(labels.loc[labels["label"] == "small-talk", "utterance_id"])
    assert ids() == set(corpus.labelled("strategy")["utterance_id"])
    assert ids(label="small-talk") == of_label
    options = {"crossval": crossval, "detector": "TF-IDF"}
    errors = crossval.errors("TF-IDF", "small-talk")
    misses, alarms = (ids(label="small-talk", show=show, **options) for show in ("misses", "false alarms"))
    assert misses == set(errors.loc[errors["error"] == "miss", "id"]) <= of_label
    assert alarms == set(errors.loc[errors["error"] == "false alarm", "id"])
    assert misses
    assert alarms
    assert not alarms & of_label
    assert ids(label="small-talk", show="errors", **options) == misses | alarms
    assert ids(label="small-talk", show="agreements", **options) == of_label - misses
    other = set(crossval.errors("TF-IDF", "no-need")["id"])
    assert ids(show="agreements", **options) == ids() - misses - alarms - other
    word = filter_utterances(corpus, scheme="strategy", query="  FOOD need ")["text"].str.lower()
    assert len(word)
    assert word.str.contains("food").all()
    assert word.str.contains("need").all()
    with pytest.raises(InputError, match="needs crossval and detector"):
        ids(show="errors")
    with pytest.raises(InputError, match="label must be one of"):
        ids(label="chatter")


def test_browser_leads_from_filter_to_text(corpus, crossval) -> None:
    browser = browse(corpus, crossval)
    browser.detector.value, browser.label.value, browser.show.value = "TF-IDF", "small-talk", "errors"
    chosen = browser.dialogue.value
    assert chosen in set(browser.found["dialogue_id"])
    html = browser._text.value
    hits = browser.found.loc[browser.found["dialogue_id"] == chosen, "utterance_id"]
    assert re.findall(r'class="?ab-hit"?.*?title="(.*?)"', html) == hits.tolist()
    assert html.count("ab-wrong") - 1 == len(hits)  # one is the style's
    assert html.count("<li") == len(corpus.utterances[corpus.utterances["dialogue_id"] == chosen])
    browser.query.value = "no such word anywhere"
    assert browser.dialogue.value is None
    assert browser._text.value == ""
    browser.found = browser.found.iloc[:0]
    assert ": 0 utterances in 0 of " in browser.summary()
    browser.found = corpus.labelled("strategy").head(1)
    assert ": 1 utterance in 1 of " in browser.summary()
    browser.query.value = ""
    browser.dialogue.value = browser.dialogue.options[-1][1]
    last = browser.dialogue.value
    browser.show.value = "all"
    assert browser.dialogue.value in (last, browser.dialogue.options[0][1])


def test_browser_without_detectors_and_with_wrong_ones(corpus, crossval) -> None:
    for name in ("casino", "delidata", "nubes"):
        browser = browse(load_corpus(name, sample=True))
        for scheme in browser.scheme.options:
            browser.scheme.value = scheme
            browser.label.value = browser.label.options[-1]
            assert len(browser.found)
        assert browser.summary().startswith(f"SAMPLE, {name}: ")
    with pytest.raises(InputError, match="which is no scheme of 'nubes'"):
        browse(load_corpus("nubes", sample=True), crossval)


def test_no_sentence_of_an_external_corpus_is_left_behind(corpus) -> None:
    from dataclasses import replace

    sample, real = browse(corpus), browse(replace(corpus, sample=False))
    first = corpus.utterances["text"].iloc[0][:20]
    assert first in sample._repr_html_()
    assert first in real._text.value
    page = "".join(str(value) for value in bundle_of(real).values())
    assert corpus.dialogues["dialogue_id"].iloc[0] in page
    assert not [text for text in corpus.utterances["text"] if len(text) > 12 and text in page]


# Labelling


def labelling(path: Path, **options) -> LabellingWidget:
    items = {f"r{i:02}": f"<b>Reply</b> {i}." for i in range(12)}
    session = LabellingSession(items, ["plain", "flattery"], path / "labels.jsonl", annotator="ana", **options)
    return LabellingWidget(session)


def press(widget: LabellingWidget, **message) -> dict:
    widget._hear(widget.screen, {"item": widget.screen.state["item"], **message}, [])
    return widget.screen.state


def test_screen_follows_the_session(tmp_path) -> None:
    widget = labelling(tmp_path)
    assert widget.screen.state["keys"] == [["1", "plain"], ["2", "flattery"]]
    state = press(widget, do="label", label="flattery")
    assert (state["status"], state["progress"], state["number"]) == (
        "Saved: flattery.",
        "1 of 12 labelled",
        "Item 2 of 12",
    )
    assert press(widget, do="skip")["item"] == "r02"
    assert press(widget, do="undo")["item"] == "r01"
    assert press(widget, do="undo")["item"] == "r00"
    step = widget.screen.state["step"]
    assert press(widget, do="undo")["status"] == "Nothing to undo."
    assert widget.screen.state["step"] == step + 1, "the screen waits for every answer"
    for _ in range(12):
        press(widget, do="label", label="plain")
    assert widget.screen.state["item"] is None
    state = press(widget, do="label", label="plain")
    assert state["bad"]
    assert "every item has a label" in state["status"]
    assert press(widget, do="annotator", name="ben")["progress"] == "0 of 12 labelled"
    assert "annotator is blank" in press(widget, do="annotator", name=" ")["status"]
    assert widget.session.annotator == "ben"


def test_a_key_for_a_text_that_is_gone_does_nothing(tmp_path) -> None:
    widget = labelling(tmp_path)
    press(widget, do="label", label="plain")
    state = press(widget, do="label", label="flattery", item="r00")
    assert state["bad"]
    assert "Not saved: item 'r00' is not the current one" in state["status"]
    assert widget.session.labelled() == {"r00": "plain"}


def test_a_full_disk_is_said_and_nothing_counts(tmp_path, monkeypatch) -> None:
    widget = labelling(tmp_path)
    press(widget, do="label", label="plain")

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("anima.jsonl._write", full)
        state = press(widget, do="label", label="plain")
    assert state["bad"]
    assert "Not saved: [Errno 28] No space left" in state["status"]
    assert state["item"] == "r01"
    assert press(widget, do="label", label="plain")["item"] == "r02"
    with (tmp_path / "labels.jsonl").open("ab") as file:
        file.write(b'{"kind":"la')
    state = press(widget, do="label", label="plain")
    assert state["bad"]
    assert "the last record is incomplete" in state["status"]
    assert len(labelling(tmp_path).session.labelled()) == 3


def test_agreement_stays_away_until_it_is_asked_for(tmp_path) -> None:
    found = dict.fromkeys([f"r{i:02}" for i in range(12)], "plain") | {"r01": "flattery", "r03": "flattery"}
    widget = labelling(tmp_path, detectors={"lexicon": found})
    people = ["plain", "flattery"] * 6
    for label in people:
        assert press(widget, do="label", label=label)["agreement"] == []
    assert "lexicon" not in json.dumps(widget.screen.get_state(), default=str)
    want = cohen_kappa(people, list(found.values()), categories=("plain", "flattery"), name="kappa of ana and lexicon")
    assert press(widget, do="agreement", open=True)["agreement"] == [want.summary()]
    assert press(widget, do="agreement", open=False)["agreement"] == []
    assert widget.validate(found).agreement.value == want.value


def test_a_name_that_clashes_later_is_said_where_agreement_stands(tmp_path) -> None:
    widget = labelling(tmp_path, detectors={"lexicon": {}})
    press(widget, do="agreement", open=True)
    session = widget.session
    LabellingSession(session.texts, session.keys, session.file.path, annotator="lexicon").label("plain")
    state = press(widget, do="label", label="plain")
    assert state["status"] == "Saved: plain."
    assert "the annotator's name 'lexicon'" in state["agreement"][0]
    assert "rename the detector" in widget._repr_html_()


# Without a kernel


def test_every_widget_leaves_a_page_that_nbconvert_takes(tmp_path, corpus) -> None:
    nbconvert = pytest.importorskip("nbconvert")
    widgets = [Explorer(REPLY), browse(corpus), labelling(tmp_path)]
    press(widgets[2], do="label", label="plain")
    cells = []
    for widget in widgets:
        bundle = bundle_of(widget)
        assert set(bundle) >= {VIEW, "text/html", "text/plain"}
        assert "<script" not in bundle["text/html"]
        assert not re.search(r"https?://", bundle["text/html"])
        cell = nbformat.v4.new_code_cell("widget", outputs=[nbformat.v4.new_output("display_data", data=bundle)])
        cells.append(cell)
    page, _ = nbconvert.HTMLExporter(template_name="basic").from_notebook_node(nbformat.v4.new_notebook(cells=cells))
    for words in ("Authenticity analysis", "SAMPLE, casino: 283 utterances", "Labelled of 12 items: ana 1."):
        assert words in page
    assert VIEW not in page
    assert "Reply</b> 3" not in page
