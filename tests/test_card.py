"""The capability card: no number typed by hand, nothing measured without its result, samples kept out, escaped everywhere."""

from __future__ import annotations

import dataclasses
import io
import json
import random
import re
import sys
import tomllib
from dataclasses import replace

import pytest
from rich.console import Console

from anima import cli
from anima.card import build_card, card_html, card_markdown, card_page, card_rich, current_card, write_card
from anima.card.build import health_words
from anima.card.render import HEAD, _span
from anima.card.rows import rules_judge
from anima.findings import Claim, Finding, Material, Measurement, published_findings
from anima.findings.history import Standing, published_report, read_history, series, snapshots
from anima.lexicon import ledger
from anima.metaeval import validate_sentinel_snapshot
from anima.settings import data_path, results_dir
from anima.stats import Estimate
from anima.stats.agreement import share_estimate

WORDS = tomllib.loads(data_path("card.toml").read_text(encoding="utf-8"))
RULES = json.loads(data_path("judge/rules_agreement.json").read_text(encoding="utf-8"))
NUMBER = re.compile(r"(?<![\w.,])[−-]?\d[\d,]*(?:\.\d+)?(?![\w-])")  # not the digits of names: F1, 32-shot
FIELDS = {"group", "title", "for", "not", "finding", "measurement", "difference", "lower_is_better"}
EVIL = '<script>alert("1")</script>|`x`'


def card(findings=None, *, evidence=None, rules=RULES, history=()):
    return build_card(
        published_findings() if findings is None else findings,
        evidence=ledger() if evidence is None else evidence,
        rules=rules,
        history=list(history),
        words=WORDS,
        inputs={},
    )


def other(estimate, rng):
    """Return another number of the same name."""
    low, value, high = sorted(rng.uniform(0.02, 0.98) for _ in range(3))
    return Estimate(estimate.name, value, low, high, n=rng.randint(10_000, 99_999))


def altered(findings, rng):
    changed = {}
    for name, finding in findings.items():
        measurements = tuple(
            replace(m, estimate=other(m.estimate, rng), baseline=m.baseline and other(m.baseline, rng))
            for m in finding.measurements
        )
        claims = tuple(replace(claim, against=rng.uniform(0, 1)) for claim in finding.claims)
        changed[name] = replace(finding, measurements=measurements, claims=claims)
    return changed


def shown(number, digits=2):
    return f"{round(number, digits) + 0.0:.{digits}f}".replace("-", "−")


def numbers_of(estimate):
    ends = [estimate.low, estimate.high] if estimate.has_interval else []
    numbers = (estimate.value, *ends)
    return {shown(x) for x in numbers} | {shown(x, 3) for x in numbers} | {f"{estimate.n:,}"}


def table_numbers(text):
    """Return every number in the cells of the card's tables, first cells and dates left out."""
    tables = text.split("## Limits that the findings state")[0]
    cells = [line.split(" | ")[1:-1] for line in tables.split("\n") if line.startswith("| **")]
    assert cells
    return {found for row in cells for cell in row for found in NUMBER.findall(cell)}


def test_the_words_of_the_card_hold_no_digit():
    raw = WORDS
    named = {"finding", "measurement", "difference"}  # where a number comes from, e.g. "markers/F1"
    texts = [
        value
        for kind in ("capability", "blind_spot")
        for row in raw[kind]
        for key, value in row.items()
        if key not in named
    ]
    texts += [raw[key] for key in ("title", "purpose", "stance", "reading")] + raw["uses"] + raw["avoid"]
    texts += [text for section in raw["sections"].values() for text in section.values()]
    assert not [text for text in texts if re.search(r"\d", str(text))]


@pytest.mark.parametrize("seed", [1, 2])
def test_no_number_is_typed_by_hand(seed):
    rng = random.Random(seed)
    findings, rules = altered(published_findings(), rng), json.loads(json.dumps(RULES))
    for raw in rules["sets"]["test"].values():
        if isinstance(raw, dict):
            raw |= {"value": rng.random(), "low": rng.random(), "high": rng.random(), "n": rng.randint(100, 999)}
    evidence = ledger()
    evidence["precision"] = evidence["precision"].map(lambda x: rng.random() if x == x else x)
    evidence["base_rate"] = evidence["base_rate"].map(lambda x: rng.random() if x == x else x)
    allowed = {"0.00", "1.00"}  # chance in kappa, and the ends of shares
    for finding in findings.values():
        for item in finding.measurements:
            allowed |= numbers_of(item.estimate) | (numbers_of(item.baseline) if item.baseline else set())
        allowed |= {shown(claim.against) for claim in finding.claims}
    for item in rules_judge(rules).values():
        allowed |= numbers_of(item.estimate) | (numbers_of(item.baseline) if item.baseline else set())
    for row in evidence.astype({"n": float, "fires": float}).to_dict("records"):
        for n in (row["n"], row["fires"]):
            if n == n and row["precision"] == row["precision"]:
                allowed |= numbers_of(share_estimate(row["precision"] * n, int(n), "")) | {shown(row["base_rate"])}
    made = card(findings, evidence=evidence, rules=rules)
    found = table_numbers(card_markdown(made))
    assert len(found) > 50
    assert found <= allowed
    # And every line that has a number has another one now.
    before = {row.source: row.estimate for section in card().sections for row in section.rows if row.source}
    for section in made.sections:
        for row in section.rows:
            if row.source in before and row.estimate.defined:
                assert row.estimate != before[row.source]


def test_first_cells_hold_only_digits_of_findings_and_ledger():
    made, findings = card(), published_findings()
    known = " ".join(f"{c.text} {c.basis}" for f in findings.values() for c in f.claims)
    known += " ".join(f.title for f in findings.values())
    known += " ".join(m.key for f in findings.values() for m in f.measurements) + " ".join(ledger()["note"])
    for section in made.sections:
        for row in section.rows:
            text = (
                re.sub(r"\d+ of \d+", "", row.title + row.note)
                if row.source.startswith("evasions")
                else row.title + row.note
            )
            assert all(token in known for token in NUMBER.findall(text)), row.title


def test_counts_of_evasions_follow_their_shares():
    rows = [
        Measurement(f"split/unseen/{key}", "x", share_estimate(hits, n, key))
        for key, hits, n in (("slipped", 7, 9), ("caught", 9, 13), ("intent changed", 5, 13))
    ]
    rows.append(Measurement("technique/irony/slipped", "x", share_estimate(7, 9, "slipped")))
    made = Finding.make(
        "evasions", title="t", answer="a", measurements=rows, limits=[], materials=[], parameters={},
        records={"techniques": [{"technique": "irony", "split": "unseen"}]},
    )  # fmt: skip
    found = card({"evasions": made}).sections[2].rows
    assert [row.title.rpartition(": ")[2] for row in found] == ["7 of 9", "9 of 13", "5 of 13"]
    assert found[0].note == "irony 7 of 9."


@pytest.mark.parametrize("way", ["deleted", "sample", "key"])
@pytest.mark.parametrize("name", sorted(published_findings()))
def test_without_its_result_a_row_is_not_measured(name, way):
    findings = published_findings()
    if way == "deleted":
        del findings[name]
    elif way == "sample":
        findings[name] = replace(findings[name], materials=(Material("toy", "00", sample=True),))
    else:
        findings[name] = replace(findings[name], measurements=(), claims=(), records={"techniques": []})
    wanted = [row for row in WORDS["capability"] + WORDS["blind_spot"] if row.get("finding") == name]
    made = card(findings)
    lines = {row.title: row for section in made.sections[:2] for row in section.rows}
    for item in wanted:
        row = lines[item["title"]]
        assert not row.estimate.defined
        assert (row.grade, row.verdict, row.date) == ("not measured", "", "–")
    assert not [
        row for s in made.sections for row in s.rows if row.source.startswith(f"{name}:") and row.estimate.defined
    ]
    assert way == "key" or findings.get(name, published_findings()[name]).title not in made.limits


def test_without_any_result_the_card_still_stands():
    made = card({}, rules=None)
    assert not [row for row in made.sections[0].rows if row.estimate.defined]
    assert made.coverage == ()
    assert made.stamp.health == "unknown"
    assert card_markdown(made).count("not measured") > 20


@pytest.mark.parametrize("kind", ["capability", "blind_spot"])
def test_every_row_names_a_measurement_that_exists(kind):
    known = {name: {m.key for m in finding.measurements} for name, finding in published_findings().items()}
    known["rules_judge"] = set(rules_judge(RULES))
    for row in WORDS[kind]:
        assert {"group", "title"} <= set(row) <= FIELDS
        if row.get("finding") in known:
            assert {row["measurement"], row.get("difference", row["measurement"])} <= known[row["finding"]], row[
                "title"
            ]


def small(value, low, high, base=None, *, key="markers/F1", claims=()):
    baseline = None if base is None else Estimate("trivial", base)
    number = Measurement(
        key, "x", Estimate("F1", value, low, high, n=9), baseline, held_out=True, evidence="constructed"
    )
    made = Finding.make(
        "embedding_pipeline", title="t", answer="a", measurements=[number], limits=["Small."], materials=[], parameters={},
        claims=list(claims),
    )  # fmt: skip
    return {"embedding_pipeline": made}


@pytest.mark.parametrize(
    ("ends", "base", "verdict"),
    [((0.5, 0.7), 0.4, "better"), ((0.5, 0.7), 0.5, "not shown"), ((0.5, 0.7), 0.6, "not shown"), ((0.5, 0.7), 0.8, "worse"), ((0.5, 0.7), None, "")],
)  # fmt: skip
def test_the_interval_decides_and_what_is_not_better_becomes_a_blind_spot(ends, base, verdict):
    made = card(small(0.6, *ends, base), rules=None)
    [row] = [row for row in made.sections[0].rows if row.estimate.defined]
    assert row.verdict == verdict
    blind = [r.title for r in made.sections[1].rows if r.source == row.source]
    assert bool(blind) == (verdict in ("worse", "not shown"))


def test_claims_that_do_not_stand_are_blind_spots():
    claims = [
        Claim("Refuted.", "markers/F1", 0.9),
        Claim("Open.", "markers/F1", 0.6),
        Claim("Stands.", "markers/F1", 0.1),
    ]
    rows = card(small(0.6, 0.5, 0.7, 0.1, claims=claims), rules=None).sections[1].rows
    found = [(row.group, row.title, row.verdict, row.evidence) for row in rows if row.group.startswith("Claims that ")]
    assert found == [
        ("Claims that fail", "Refuted.", "fails", "refuted"),
        ("Claims that are undecided", "Open.", "undecided", "constructed"),
    ]


def test_dates_and_stamp_come_from_the_history():
    line = {"judgeId": "embedding_pipeline/x/kappa", "judgeModel": "m", "metrics": {"calibrationKappa": 0.2}}
    line["interval"] = {"calibrationKappa": [0.1, 0.3]}
    history = [validate_sentinel_snapshot(line | {"at": f"2026-01-0{day}T00:00:00Z"}) for day in (2, 5, 3)]
    made = card(small(0.6, 0.5, 0.7, 0.1), rules=None, history=history)
    assert {row.date for row in made.sections[0].rows if row.estimate.defined} == {"2026-01-05"}
    assert made.stamp.health == "alarmed"
    assert "“Alarmed” means" in card_html(made)


def kappa_line(judge, value, low, high):
    """Return a line of the history."""
    metrics = {"metrics": {"calibrationKappa": value}, "interval": {"calibrationKappa": [low, high]}}
    return validate_sentinel_snapshot({"judgeId": judge, "judgeModel": "m", "at": "2026-01-05T00:00:00Z"} | metrics)


def test_health_counts_each_series_once_and_by_its_whole_interval():
    lines = [
        kappa_line("kappa_revalidation/casino/x/phrases/kappa", 0.3, 0.2, 0.35),
        kappa_line("casino_recall/x/phrases/kappa", 0.3, 0.2, 0.35),  # the same detector, label and corpus
        kappa_line("kappa_revalidation/casino/y/phrases/kappa", 0.3, 0.2, 0.45),  # reaches over the floor
        kappa_line("casino_recall/y/head/kappa", 0.6, 0.5, 0.7),
        kappa_line("casino_recall/macro/head/kappa", 0.2, 0.1, 0.3),  # a mean of labels
    ]
    report = published_report(lines)
    assert [alarm.judge_id for alarm in report.alarms] == ["kappa_revalidation/casino/x/phrases/kappa"]
    assert report.judges["kappa_revalidation/casino/y/phrases/kappa"] == "unknown"
    said = health_words(report)
    assert said.startswith("Of 2 rows of a detector and a label on the page")
    assert (
        "0 agree with people above a kappa of 0.4 by their whole interval, 1 lie below it, and 1 are in doubt" in said
    )
    assert "Other pages publish 1 more, each counted once: 1 above 0.4, 0 below and 0 in doubt." in said
    assert published_report(lines[3:4]).health == "unknown"  # one line is too few to tell a change
    assert health_words(published_report([])) == "No detector is watched yet."


def test_page_and_card_say_the_same_counts():
    made, page = card(history=read_history(results_dir())), published_findings()["kappa_revalidation"]
    doubtful, rows = page.records["doubtful"], page.records["raters"]
    below = sum(row["high"] < 0.4 for row in rows)
    told = Standing(len(rows) - below - len(doubtful), below, len(doubtful)).told(0.4)
    assert f"Of {len(rows)} rows of a detector and a label" in made.health
    assert told in made.health
    published = {
        item.judge_id: item.measured("calibrationKappa")[0]
        for finding in published_findings().values()
        for item in snapshots(finding, "2026-01-05T00:00:00Z")
    }
    of = {}
    for judge, value in published.items():
        assert of.setdefault(series(judge), value) == value, judge  # one series, one number
    assert len(of) < len(published)


def test_two_decimals_become_three_where_they_show_no_width():
    assert [_span(Estimate("x", *ends)) for ends in ((0.001, 0.0, 0.004), (0.01, 0.004, 0.021), (-0.0004, -0.003, 0.002))] == [
        "0.001 [0.000, 0.004]", "0.01 [0.00, 0.02]", "0.000 [−0.003, 0.002]",
    ]  # fmt: skip


def test_no_two_rows_of_the_card_look_alike():
    rows = [(row.group, row.title, row.estimate.name) for section in card().sections for row in section.rows]
    assert not [row for row in rows if rows.count(row) > 1]
    page = io.StringIO()
    Console(file=page, width=200).print(card_rich(card()))
    assert "commitment, English, on casino" in page.getvalue()
    assert "en, negotiation chat" in page.getvalue()  # the material, as the head of the column says


def test_everything_is_escaped_and_nothing_is_fetched():
    findings = small(0.6, 0.5, 0.7, 0.1, claims=[Claim(EVIL, "markers/F1", 0.9)])
    evil = findings["embedding_pipeline"]
    number = replace(
        evil.measurements[0], genre=EVIL, language=EVIL, estimate=replace(evil.measurements[0].estimate, name=EVIL),
        baseline=Estimate(EVIL, 0.1),
    )  # fmt: skip
    findings["embedding_pipeline"] = replace(evil, title=EVIL, limits=(EVIL,), measurements=(number,))
    made = card(findings, rules=None)
    for text in (card_html(made), made._repr_html_(), card_page(made), card_markdown(made)):
        assert "<script" not in text
    assert "&lt;script&gt;" in card_html(made)
    assert not re.findall(r"https?:|src=|url\(|@import", card_html(made))


def test_all_tables_have_one_form():
    made = card()
    tables = re.findall(r"<table><thead>(.*?)</thead><tbody>(.*?)</tbody></table>", card_html(made))
    assert len(tables) == len(made.sections) == 4
    for (head, body), section in zip(tables, made.sections, strict=True):
        rows = [row for row in re.findall(r"<tr.*?</tr>", body) if "colspan" not in row]
        assert len(rows) == len(section.rows)
        assert {row.count("<td") for row in rows} == {head.count("<th ")}
    lines = [line for line in card_markdown(made).split("\n## Receipt")[0].split("\n") if line.startswith("|")]
    assert len(lines) > sum(len(section.rows) for section in made.sections)
    assert {len(re.findall(r"(?<!\\)\|", line)) for line in lines} == {len(HEAD) + 1}


def test_the_terminal_says_what_the_page_says():
    made, page = card(), io.StringIO()
    Console(file=page, width=120).print(card_rich(made))
    said = " ".join(page.getvalue().split())
    for text in (
        "Do not use it for",
        *made.uses,
        *made.avoid,
        *made.coverage,
        made.reading,
        *sum(made.limits.values(), ()),
    ):
        assert " ".join(text.split()) in said


def test_the_committed_card_is_checked(tmp_path):
    made = current_card()
    assert "no card there" in made.problems(tmp_path)[0]
    path = write_card(tmp_path)
    assert made.problems(tmp_path) == []
    kept = json.loads(path.read_text(encoding="utf-8"))
    kept["sections"][0]["rows"][0]["estimate"]["value"] = 0.999
    path.write_text(json.dumps(kept), encoding="utf-8")
    assert "edited by hand" in made.problems(tmp_path)[0]
    write_card(tmp_path)
    newer = dataclasses.replace(made, inputs=dict(made.inputs) | {"lexicon ledger": "other"})
    assert newer.problems(tmp_path) == ["the card was written before a change of: lexicon ledger"]
    path.write_text("[]", encoding="utf-8")
    assert "not a card" in made.problems(tmp_path)[0]


@pytest.fixture
def command(monkeypatch, capsys):
    def call(*args):
        monkeypatch.setattr(sys, "argv", ["anima", "card", *args])
        with pytest.raises(SystemExit) as end:
            cli.main()
        return end.value.code, capsys.readouterr()

    return call


@pytest.mark.parametrize("name", ["card.md", "card.html", "card.json", "card.txt"])
def test_the_command_writes_every_format(name, tmp_path, command):
    assert not command("--out", str(tmp_path / name))[0]
    text = (tmp_path / name).read_text(encoding="utf-8")
    assert "Where it is blind" in text
    assert (json.loads(text)["card"] == 1) if name.endswith("json") else True


def test_the_command_refuses_another_format(command, tmp_path):
    code, said = command("--format", "pdf")
    assert (code, said.err.startswith("anima: format must be one of")) == (2, True)
    for name in ("x.xyz", "x"):
        code, said = command("--out", str(tmp_path / name))
        assert (code, said.out) == (2, "")
        assert "names no format; take .md, .html, .json, .txt, or add --format" in said.err
        assert not (tmp_path / name).exists()
    assert not command("--out", str(tmp_path / "x"), "--format", "markdown")[0]
    assert (tmp_path / "x").read_text(encoding="utf-8").startswith("# Capability card")
