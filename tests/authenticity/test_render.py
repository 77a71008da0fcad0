"""Analyses on screen: nothing of the reply is lost or executed, and nothing depends on colour alone."""

from __future__ import annotations

import io
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

import anima.authenticity.render.html as html_module
from anima.authenticity.analysis import Analysis, Step
from anima.authenticity.intents import UNCLASSIFIED, catalogue
from anima.authenticity.markers import MarkerHit
from anima.authenticity.neighbours import Neighbour, PoolEntry, cross_pool
from anima.authenticity.poles import NO_POLE, PoleScore
from anima.authenticity.render import analysis_chart, analysis_html, analysis_rich
from anima.authenticity.render.pieces import pieces, visible
from anima.authenticity.trajectory import assess, transitions
from anima.plots import intent_color
from anima.plots.theme import chart_svg

VOID = {"wbr"}
TAGS = {
    "b", "bdi", "caption", "details", "div", "li", "mark", "ol", "p", "section", "span", "style", "summary", "sup", "table", "tbody", "td",
    "th", "thead", "tr", "wbr",
}  # fmt: skip
ATTRIBUTES = {"aria-hidden", "aria-label", "class", "dir", "role", "scope", "style", "title"}


class Page(HTMLParser):
    """Checks nesting, tags and attributes while reading; keeps the reply as it can be copied, and what is underlined."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[tuple[str, str]] = []
        self.reply, self.text, self.classes = "", "", []
        self.marks: list[tuple[str, str, str]] = []
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attrs):
        assert tag in TAGS, tag
        assert {name for name, _ in attrs} <= ATTRIBUTES, attrs
        found = dict(attrs)
        assert "url(" not in found.get("style", "")
        if tag == "mark":
            self.marks.append((found["class"], found.get("title", ""), ""))
        self.classes += found.get("class", "").split()
        if tag not in VOID:
            self.open.append((tag, found.get("class", "")))

    def handle_endtag(self, tag):
        assert self.open.pop()[0] == tag

    def handle_data(self, data):
        classes = " ".join(name for _, name in self.open)
        if self.open and self.open[-1][0] == "style":
            return
        self.text += data
        if "an-reply" in classes and not re.search(r"\ban-(chip|number|sr)\b", classes):
            self.reply += data
            if any(tag == "mark" for tag, _ in self.open):
                kind, title, so_far = self.marks[-1]
                self.marks[-1] = (kind, title, so_far + data)


def hit(response: str, phrase: str, *, suppressed: bool = False, start: int | None = None, **changes) -> MarkerHit:
    start = response.index(phrase) if start is None else start
    fields = {
        "marker_id": "SOFT_CLOSURE",
        "pattern": "COMPLACENCY_INDUCTION",
        "position": "middle",
        "weight": 0.75,
        "severity": "high",
    }
    fields |= {"reason": "negated by “not”" if suppressed else "closes softly"}
    return MarkerHit(phrase=phrase, start=start, end=start + len(phrase), suppressed=suppressed, **fields | changes)


def analysis(
    response: str, spans: list[tuple[int, int, str]], hits: list[MarkerHit] = (), *, margin: float = 0.4, **changes
) -> Analysis:
    chain = [intent for _, _, intent in spans]
    steps = tuple(
        Step(
            index=i, phrase=response[start:end], start=start, end=end, intent=intent, confidence=0.75, runner_up="ANCHOR", margin=margin,
            scores={intent: 0.75, "ANCHOR": 0.75 - margin}, position="middle", predicted_next=change.predicted_next,
            actual_next=change.actual_next, deviation=change.deviation,
        )
        for i, ((start, end, intent), change) in enumerate(zip(spans, transitions(chain), strict=True))
    )  # fmt: skip
    entries = [
        PoolEntry("Near text.", "shadow", primary_pattern="VALIDATE", notes="flatters"),
        PoolEntry("Far text.", "core"),
    ]
    fields = {
        "question": None, "trajectory": assess(chain), "embedder": "fake-1", "classifier": "hybrid", "rules": "anima",
        "pole": PoleScore(0.06, 1, "certeza_performada", 0.4, 0.34, 0.3, -0.02, 0.05) if steps else NO_POLE,
        "neighbours": tuple(Neighbour(i, 0.8 - i / 10, entry) for i, entry in enumerate(entries, 1)) if steps else (),
        "pools": cross_pool({"core": 0.6, "shadow": 0.7} if steps else {}),
        "note": "" if steps else "the reply is blank",
    }  # fmt: skip
    live = tuple(h for h in hits if not h.suppressed)
    lost = tuple(h for h in hits if h.suppressed)
    return Analysis(response=response, steps=steps, markers=live, suppressed_markers=lost, **fields | changes)


TEXT = "What a great question! - It costs $5.\nThis is not a great question. I hope this helps 🙂"


def example(**changes) -> Analysis:
    spans = [(0, 22, "VALIDATE"), (25, 37, UNCLASSIFIED), (38, 67, "CALIBRATE"), (68, len(TEXT), "CLOSE")]
    hits = [
        hit(TEXT, "great question", marker_id="SUPERLATIVE_VALIDATION"),
        hit(TEXT, "great question", suppressed=True, start=52, marker_id="SUPERLATIVE_VALIDATION"),
        hit(TEXT, "I hope this helps", reason="", note="a soft closing"),
    ]
    return analysis(TEXT, spans, hits, **{"question": "Is it dear?"} | changes)


def printed(found: Analysis, width: int = 100, **options) -> str:
    console = Console(width=width, file=io.StringIO(), **{"color_system": None} | options)
    console.print(analysis_rich(found))
    return console.file.getvalue()


# HTML


def test_html_shows_every_part_in_words() -> None:
    text = Page(analysis_html(example())).text
    for part in (
        "Is it dear?", "◆ VALIDATE", "○ plain", "● CALIBRATE", "negated by “not”", "does not count", "closes softly", "a soft closing",
        "performed certainty", "+0.060", "−0.020", "+0.050", "shadow leads", "0.70", "Near text.", "T14", "genuine moves are at least half", "fake-1",
        "regime changes",
    ):  # fmt: skip
        assert part in text, part


def test_html_keeps_the_reply_and_underlines_the_slices() -> None:
    page = Page(analysis_html(example()))
    assert page.reply == TEXT
    assert [(kind, shown) for kind, _, shown in page.marks if shown] == [
        ("an-marker", "great question"),
        ("an-suppressed", "great question"),
        ("an-marker", "I hope this helps"),
    ]
    titles = [title for _, title, shown in page.marks if shown]
    assert titles[0] == "Marker 1, SUPERLATIVE_VALIDATION, high: closes softly"
    assert titles[1] == "Marker 2, SUPERLATIVE_VALIDATION, does not count: negated by “not”"
    assert page.text.count("(suppressed marker SUPERLATIVE_VALIDATION)") == 1


def test_marker_across_sentences_is_cut_at_the_border() -> None:
    text = "One thing. And another, too."
    spans = [(0, 10, "EVADE"), (11, 28, "EXPAND")]
    inner = hit(text, "another", suppressed=True)
    page = Page(analysis_html(analysis(text, spans, [hit(text, "thing. And another"), inner])))
    assert page.reply == text
    # The stretch under both counts as marked, since one of them counts.
    assert [(kind, shown) for kind, _, shown in page.marks if shown] == [
        ("an-marker", "thing."), ("an-marker", " "), ("an-marker", "And "), ("an-marker", "another"),
    ]  # fmt: skip
    assert page.marks[3][1].count("Marker") == 2


def test_a_name_and_a_shape_stand_beside_every_tint() -> None:
    names = [*catalogue(), UNCLASSIFIED]
    text = "".join(f"Sentence {i:02}. " for i in range(len(names)))
    found = analysis(text, [(13 * i, 13 * i + 12, name) for i, name in enumerate(names)])
    page = analysis_html(found)
    for step in found.steps:
        mark = {"control": "◆", "genuine": "●", "plain": "○"}[step.regime]
        assert re.search(rf"{mark}</span> {'plain' if step.regime == 'plain' else step.intent}</span>", page)


def test_tint_grows_with_the_margin() -> None:
    def opacity(margin: float) -> int:
        page = analysis_html(example(margin=margin))
        return int(re.search(rf"background-color:{intent_color('VALIDATE')}([0-9a-f]{{2}})", page)[1], 16)

    assert opacity(0.0) < opacity(0.3) < opacity(0.8) == opacity(0.9)
    assert opacity(float("nan")) == opacity(0.0)


@pytest.mark.parametrize("intent", [*catalogue()])
def test_tinted_text_stays_readable_on_light_and_dark(intent: str) -> None:
    css = Path(html_module.__file__).with_name("analysis.css").read_text(encoding="utf-8")
    papers = re.findall(r"--an-paper: (#\w{6})", css)
    inks = re.findall(r"--an-ink: (#\w{6})", css)
    assert len(papers) == len(inks) >= 3
    color = intent_color(intent)
    opacity = int(html_module._tint(example(margin=1.0).steps[0], "hybrid")[7:], 16) / 255

    def luminance(channels: list[float]) -> float:
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
        return sum(w * c for w, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))

    def channels(value: str) -> list[float]:
        return [int(value[i : i + 2], 16) / 255 for i in (1, 3, 5)]

    for paper, ink in zip(papers, inks, strict=True):
        tinted = [opacity * c + (1 - opacity) * p for c, p in zip(channels(color), channels(paper), strict=True)]
        low, high = sorted((luminance(tinted), luminance(channels(ink))))
        assert (high + 0.05) / (low + 0.05) >= 4.5


BAD = "<script>alert('x')</script>\"' onmouseover=\"x\" </style></div><img src=x>&amp;"


def test_nothing_of_the_input_is_markup() -> None:
    found = analysis(
        BAD,
        [(0, len(BAD), BAD)],
        [hit(BAD, "alert", marker_id=BAD, reason=BAD, pattern=BAD), hit(BAD, "script", suppressed=True, reason=BAD)],
        question=BAD, note=BAD, embedder=BAD,
        neighbours=(Neighbour(1, 0.5, PoolEntry(BAD, "core", primary_pattern=BAD, notes=BAD)),),
    )  # fmt: skip
    page = Page(analysis_html(found))  # fails on a tag or an attribute that is not ours
    assert page.reply == BAD
    assert "script" not in TAGS
    assert "<script" not in chart_svg(analysis_chart(found).to_dict())


def test_html_asks_for_nothing_and_has_no_id() -> None:
    page = analysis_html(example())
    assert not re.search(r"https?:|url\(|@import|<script|\bid=|javascript:", page)
    assert page == analysis_html(example())
    assert 'class="anima tex2jax_ignore mathjax_ignore"' in page


def test_control_characters_are_shown_and_line_ends_made_one() -> None:
    assert visible("a\x00b\x1b[2J\r\nc\rd\x85\x7f\te") == "a␀b␛[2J\nc\nd\ufffd␡\te"
    text = "A\x00 b\x1b[31m.\r\nEnd of it."
    page = analysis_html(analysis(text, [(0, 10, "EVADE"), (12, 22, "CLOSE")]))
    assert "\x00" not in page
    assert "\x1b" not in page
    assert Page(page).reply == "A␀ b␛[31m.\nEnd of it."


@pytest.mark.parametrize(
    ("response", "note"), [("", "the reply is blank"), ("🙂🙂", "the reply holds no letter or digit")]
)
def test_nothing_analysed_says_why(response: str, note: str) -> None:
    found = analysis(response, [], note=note)
    page = Page(analysis_html(found))
    assert note in page.text
    assert page.reply == response
    assert "an-gauge" not in page.classes
    assert note in printed(found)
    chart = analysis_chart(found)
    assert note in str(chart.to_dict()["datasets"] if "datasets" in chart.to_dict() else chart.to_dict())
    assert note in chart_svg(chart.to_dict())


def test_a_note_beside_sentences_is_shown() -> None:
    found = example(note="markers were switched off")
    assert "Note: markers were switched off." in Page(analysis_html(found)).text
    assert "Note: markers were switched off." in printed(found)


def test_one_sentence_has_undefined_densities_and_says_insufficient() -> None:
    page = Page(analysis_html(analysis("It costs $5.", [(0, 12, UNCLASSIFIED)])))
    assert "insufficient" in page.text
    assert "control among classified undefined" in page.text
    assert not re.search(r"\bnan\b", page.text, re.IGNORECASE)


@pytest.mark.parametrize(
    ("raw", "low", "high"),
    [(0.0, 0.0, 0.0), (1.9, -0.1, 0.1), (-0.3, 0.1, 0.2), (0.05, -0.4, -0.3), (1e-12, -1e-12, 0.0)],
)
def test_gauge_keeps_its_order_inside_the_frame(raw: float, low: float, high: float) -> None:
    label = "certeza_performada" if raw > high else "duda_performada" if raw < low else "neutro"
    page = analysis_html(example(pole=PoleScore(raw, 0, label, 0.5, 0.5, float("nan"), low, high)))
    places = [
        float(x)
        for x in re.findall(
            r'(?:an-needle" style="left|an-zone" style="left:0;width|an-zone" style="left):([\d.]+)%', page
        )
    ]
    assert len(places) == 3
    below, above, needle = places
    assert all(0 <= place <= 100 for place in places)
    assert below <= above
    assert (needle > above) == (raw > high)
    assert (needle < below) == (raw < low)


def test_long_replies_are_cut_and_say_so() -> None:
    sentence = "One more of them. "
    text = sentence * 5000
    found = analysis(
        text,
        [(18 * i, 18 * i + 17, "EXPAND") for i in range(5000)],
        [hit(text, "them", start=18 * i + 12) for i in range(5000)],
    )
    page = analysis_html(found)
    assert len(page) < 600_000
    shown = Page(page)
    assert "the first 200 of 5,000 sentences" in shown.text
    assert "4,800 more markers are not shown" in shown.text
    assert shown.reply == text[: 18 * 199 + 17]
    assert "an-dense" in shown.classes
    assert "first 60 of 5,000" in chart_svg(analysis_chart(found).to_dict())
    assert "the first 200 of 5,000" in printed(found)
    block = "word " * 200_000
    assert "980,000 more are not" in Page(analysis_html(analysis(block, [(0, len(block) - 1, "EXPAND")]))).text


spans_of = st.lists(st.integers(0, 60), min_size=2, max_size=12, unique=True).map(sorted)


@settings(max_examples=150, deadline=None)
@given(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=60),
    spans_of,
    st.lists(st.tuples(st.integers(0, 60), st.integers(0, 60), st.booleans()), max_size=6),
)
def test_any_overlap_of_sentences_and_markers_nests_and_loses_nothing(
    text: str, edges: list[int], marked: list[tuple[int, int, bool]]
) -> None:
    text = text.replace("\r", " ")
    edges = [edge for edge in edges if edge <= len(text)]
    spans = [(a, b, "EVADE") for a, b in zip(edges[::2], edges[1::2], strict=False)]
    hits = [hit(text, text[min(a, b) : max(a, b)], start=min(a, b), suppressed=s) for a, b, s in marked]
    found = analysis(text, spans, hits)
    if text.strip():
        page = Page(analysis_html(found))
        # A parser reads U+0000 to U+001F as pictures here and the rest as it stands.
        assert page.reply == visible(text)
        assert page.classes.count("an-sentence") == len(spans)
    cut = list(pieces(found))
    assert "".join(piece.text for piece in cut) == visible(text)
    assert sum(piece.first for piece in cut) == sum(piece.last for piece in cut) == len(spans)
    assert sorted(i for piece in cut for i in piece.ending) == sorted({i for piece in cut for i, _ in piece.hits})


# Chart


def test_chart_draws_confidence_margin_pools_and_pole() -> None:
    chart = analysis_chart(example())
    spec = chart.to_dict(validate=True)
    chain, figures = spec["vconcat"]
    rows = [row for data in spec.get("datasets", {}).values() for row in data] or chain["layer"][0]["data"]["values"]
    first = next(row for row in rows if row.get("intent") == "VALIDATE")
    assert (first["confidence"], first["margin"], first["from"]) == (0.75, 0.4, 0.35)
    assert first["color"] == intent_color("VALIDATE")
    assert [half["title"]["text"] for half in figures["hconcat"]] == ["Pools", "Pole: performed certainty"]
    svg = chart_svg(spec)
    assert all(name in svg for name in ("VALIDATE", "CALIBRATE", "plain", "shadow", "+0.060"))
    assert svg == chart_svg(analysis_chart(example()).to_dict())


# Terminal


def test_terminal_loses_nothing_without_colour() -> None:
    text = printed(example(), 120)
    assert "\x1b" not in text
    for part in (
        "◆VALIDATE", "○plain", "●CALIBRATE", "great question[1]", "great question(2)", "[3]", "does not count: negated", "T14 low predictability",
        "performed certainty: +0.060", "shadow leads by 0.100", "Near text.", "⇄",
    ):  # fmt: skip
        assert part in text, part


@pytest.mark.parametrize("width", [20, 40, 63, 64, 80, 109, 110, 200])
def test_terminal_fits_any_width(width: int) -> None:
    lines = printed(example(), width).split("\n")
    assert max(map(len, lines)) <= width


def test_terminal_obeys_neither_markup_nor_escapes_of_the_reply() -> None:
    text = "[bold red]Look[/] \x1b[2J here. [link=http://x]more[/link] :smile: of it."
    found = analysis(
        text, [(0, 30, "EVADE"), (31, len(text), "CLOSE")], [hit(text, "Look")], question="[blink]why[/blink]"
    )
    shown = printed(found, 120)
    assert "\x1b" not in shown
    assert "[blink]why[/blink]" in shown
    assert "[bold red]Look[1][/] ␛[2J here." in shown
    assert ":smile:" in shown


def test_terminal_tints_where_it_can() -> None:
    coloured = printed(example(), 100, color_system="truecolor", force_terminal=True)
    red, green, blue = (int(intent_color("VALIDATE")[i : i + 2], 16) for i in (1, 3, 5))
    assert f"48;2;{red};{green};{blue}" in coloured
