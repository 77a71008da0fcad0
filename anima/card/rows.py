"""Rows of the card from findings, the lexicon's ledger, the evasions and the rules judge."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from anima.card.model import NOT_MEASURED, Row, Verdict
from anima.findings import Measurement
from anima.stats import Estimate
from anima.stats.agreement import share_estimate

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import pandas as pd

    from anima.findings import Finding
    from anima.metaeval import SentinelSnapshot

_WORST: Final = 3  # intents named as the worst recognised
_SAID: Final[Mapping[str, str]] = {"worse": "worse than", "not shown": "not shown to be better than"}
_LANGUAGES: Final[Mapping[str, str]] = {"en": "English", "es": "Spanish"}


def named_row(item: Mapping[str, Any], known: Mapping[str, Mapping[str, Measurement]], dates: Mapping[str, str]) -> Row:
    """Return a row of ``card.toml`` with the number that it names, or "not measured"."""
    name, key = item.get("finding", ""), item.get("measurement", "")
    found = known.get(name, {}).get(key)
    note = " ".join(f"{word} {item[field]}." for field, word in (("for", "For"), ("not", "Not")) if item.get(field))
    if found is None:
        return Row(item["group"], item["title"], note, _missing(key), source=f"{name}: {key}" if name else "")
    gain = known[name].get(item.get("difference", ""))
    if found.baseline is None and key.endswith("kappa"):
        found = replace(found, baseline=Estimate("chance", 0.0))
    verdict = _compared(
        found.estimate, found.baseline, gain.estimate if gain else None, lower=item.get("lower_is_better", False)
    )
    return _of(found, item["group"], item["title"], note, verdict, dates[name], f"{name}: {key}")


def _of(found: Measurement, group: str, title: str, note: str, verdict: Verdict, date: str, source: str) -> Row:
    return Row(
        *(group, title, note, found.estimate, found.baseline, verdict, found.evidence, found.held_out),
        *(found.language, found.genre, date, source),
    )


def _missing(name: str) -> Estimate:
    return Estimate.undefined(name.rpartition("/")[2], NOT_MEASURED)


def _compared(estimate: Estimate, baseline: Estimate | None, gain: Estimate | None, *, lower: bool) -> Verdict:
    """Say whether an interval lies on the better side of the trivial rival."""
    if gain is not None:
        estimate, against = gain, 0.0
    elif baseline is None or not baseline.defined:
        return ""
    else:
        against = baseline.value
    if not estimate.has_interval:
        return ""
    above, below = estimate.low > against, estimate.high < against
    if lower:
        above, below = below, above
    return "better" if above else "worse" if below else "not shown"


def unproven_rows(able: Iterable[Row], blind: Iterable[Row]) -> list[Row]:
    """Return the capabilities that are not shown to be better than a trivial rule and not yet named as blind spots."""
    named = {row.source for row in blind if row.source}
    return [
        Row(**vars(row) | {"title": f"{row.title}: {_SAID[row.verdict]} a trivial rule", "note": ""})
        for row in able
        if row.verdict in ("worse", "not shown") and row.source not in named
    ]  # fmt: skip


def worst_intents(known: Mapping[str, Mapping[str, Measurement]], dates: Mapping[str, str]) -> list[Row]:
    """Return the intents with the lowest F1."""
    name = "embedding_pipeline"
    scores = [
        item
        for key, item in known.get(name, {}).items()
        if key.startswith("intents/") and key.count("/") > 1 and item.estimate.defined
    ]
    worst = sorted(scores, key=lambda item: item.estimate.value)[:_WORST]
    return [
        _of(
            *(item, "Replies", f"Intent {item.key.split('/')[1]}: among the worst recognised", ""),
            *(_compared(item.estimate, item.baseline, None, lower=False), dates[name], f"{name}: {item.key}"),
        )
        for item in worst
    ]


def open_claims(findings: Mapping[str, Finding], dates: Mapping[str, str]) -> list[Row]:
    """Return the claims that failed or are undecided, with the number that decides them."""
    rows = []
    for name, finding in findings.items():
        known = {item.key: item for item in finding.measurements}
        for claim in finding.claims:
            if (verdict := claim.verdict(known)) not in ("fails", "undecided"):
                continue
            found = known[claim.by]
            against = Estimate(f"needed: {claim.expects}", claim.against)
            row = _of(
                found,
                "Claims that do not stand",
                claim.text,
                f"From: {finding.title}.",
                verdict,
                dates[name],
                f"{name}: {claim.by}",
            )
            grade = "refuted" if verdict == "fails" else row.evidence
            rows.append(replace(row, baseline=against, evidence=grade))
    return sorted(rows, key=lambda row: row.verdict != "fails")


def evasion_rows(finding: Finding | None, dates: Mapping[str, str]) -> list[Row]:
    """Return by split how many succeed, of how many, with the techniques in words."""
    if finding is None:
        return [Row("Evasions", "Rewritings that keep the meaning", "", _missing("share slipping past the lexicon"))]
    known = {item.key: item for item in finding.measurements}
    tried: dict[str, list[str]] = {}
    for row in finding.records["techniques"]:
        number = known[f"technique/{row['technique']}/slipped"].estimate
        told = _count(number) if number.defined else "plain sentence not caught"
        tried.setdefault(row["split"], []).append(f"{row['technique']} {told}")
    rows = []
    for split, techniques in tried.items():
        for statistic, title in (
            ("slipped", "Slip past the lexicon: {}"),
            ("caught", "For comparison, plain sentences that the lexicon catches: {}"),
            ("intent changed", "The intent of the sentence changes: {}"),
        ):
            item = known[f"split/{split}/{statistic}"]
            note = "; ".join(techniques) + "." if statistic == "slipped" else ""
            title = title.format(_count(item.estimate))
            rows.append(_of(item, f"Techniques {split}", title, note, "", dates["evasions"], f"evasions: {item.key}"))
    return rows


def _count(share: Estimate) -> str:
    return f"{round(share.value * share.n)} of {share.n}" if share.defined else "none to count"


def lexicon_rows(frame: pd.DataFrame) -> list[Row]:
    """Return precision by category where anybody looked, then what was only constructed, then what was refuted."""
    frame = frame.astype({"n": float, "fires": float})
    looked = frame[frame["precision"].notna() & frame["evidence"].isin(["measured", "spot-checked"])]
    rows = []
    for item in looked.drop_duplicates(["category", "lang", "corpus", "label"]).to_dict("records"):
        # Against labels every hit counts, in a spot check those that were read.
        n = int(item["fires"] if item["label"] else item["n"])
        how = f", against the label {item['label']}" if item["label"] else ", hits read by one person"
        base = Estimate("base rate", item["base_rate"]) if item["base_rate"] == item["base_rate"] else None
        number = share_estimate(item["precision"] * n, n, "precision")
        row = Row(
            "Phrases in use", f"{item['category']}, {_LANGUAGES[item['lang']]}", f"On {item['corpus']}{how}.", number
        )
        grade = "measured" if item["label"] else item["evidence"]
        rows.append(
            replace(
                row, baseline=base, verdict=_compared(number, base, None, lower=False), evidence=grade,
                held_out=bool(item["held_out"]), language=item["lang"], genre=item["corpus"],
            )
        )  # fmt: skip
    seen = set(zip(looked["category"], looked["lang"], strict=True))
    for lang, name in _LANGUAGES.items():
        only = [c for c in dict.fromkeys(frame["category"][frame["lang"] == lang]) if (c, lang) not in seen]
        title = f"{name}, never looked at: {', '.join(only)}"
        row = Row("Phrases in use", title, "Written examples only.", _missing("precision"))
        rows.append(replace(row, evidence="constructed", language=lang, genre="written sentences"))
    for item in frame[frame["evidence"] == "refuted"].to_dict("records"):
        counted = item["n"] == item["n"] and item["precision"] == item["precision"]
        number = (
            share_estimate(item["precision"] * item["n"], int(item["n"]), "precision")
            if counted
            else _missing("precision")
        )
        phrase, _, reason = item["note"].partition(": ")
        row = Row("Phrases taken out", f"{phrase} as {item['category']}", f"{reason[:1].upper()}{reason[1:]}.", number)
        rows.append(replace(row, evidence="refuted", language=item["lang"], genre=item["corpus"]))
    return rows


def coverage(able: Iterable[Row]) -> tuple[str, ...]:
    """Return what material the measured capabilities were seen on, by language and genre."""
    found: dict[tuple[str, str], dict[str, None]] = {}
    for row in able:
        for lang in filter(None, row.language.split(", ")) if row.estimate.defined else ():
            found.setdefault((lang, row.genre), {})[row.grade] = None
    return tuple(
        f"{_LANGUAGES.get(lang, lang)}, {genre}: {'; '.join(kinds)}" for (lang, genre), kinds in sorted(found.items())
    )


def rules_judge(rules: Mapping[str, Any] | None) -> dict[str, Measurement]:
    """Return the published agreement of the rules judge on held-out replies as measurements."""
    if not rules or "test" not in rules.get("sets", {}):
        return {}
    test = {
        key: Estimate(
            name, **{field: raw[field] for field in ("value", "low", "high", "n", "method", "status", "reason")}
        )
        for key, name in (
            ("inside", "share of scores inside their range"),
            ("constant_inside", "one score for all"),
            ("gain", "share inside less that of one score for all"),
        )
        if (raw := rules["sets"]["test"].get(key))
    }
    common: dict[str, Any] = {
        "held_out": True,
        "evidence": "constructed",
        "language": "en, es",
        "genre": "assistants' replies",
    }
    what = "a score of a whole reply, by rules"
    return {
        "inside": Measurement("inside", what, test["inside"], test.get("constant_inside"), **common),
        "gain": Measurement("gain", what, test["gain"], **common),
    }


def newest_day(name: str, history: Iterable[SentinelSnapshot]) -> str:
    """Return the day of the newest snapshot of a finding: its judge is called after it, or ``<finding>/<detector>``."""
    days = [item.time for item in history if item.judge_id.partition("/")[0] == name]
    return max(days).date().isoformat() if days else "–"
