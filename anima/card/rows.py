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

    Known = Mapping[str, Mapping[str, Measurement]]
    Dates = Mapping[str, str]

_WORST: Final = 3  # intents named as the worst recognised
_SAID: Final[Mapping[str, str]] = {"worse": "worse than", "not shown": "not shown to be better than"}
_LANGUAGES: Final[Mapping[str, str]] = {"en": "English", "es": "Spanish"}


def named_row(item: Mapping[str, Any], known: Known, dates: Dates) -> Row:
    """Return a row of ``card.toml`` with the number that it names, or "not measured"."""
    name, key = item.get("finding", ""), item.get("measurement", "")
    note = " ".join(f"{word} {item[field]}." for field, word in (("for", "For"), ("not", "Not")) if item.get(field))
    row = Row(item["group"], item["title"], note, _missing(key), source=f"{name}: {key}" if name else "")
    found = known.get(name, {}).get(key)
    if found is None:
        return row
    if found.baseline is None and key.endswith("kappa"):
        found = replace(found, baseline=Estimate("chance", 0.0))
    gain = known[name].get(item.get("difference", ""))
    difference = gain.estimate if gain else None
    verdict = _compared(found.estimate, found.baseline, difference, lower=item.get("lower_is_better", False))
    return _measured(row, found, verdict, dates[name])


def _measured(row: Row, found: Measurement, verdict: Verdict, date: str) -> Row:
    """Return a row with a measurement and what is known of it."""
    known = ("estimate", "baseline", "evidence", "held_out", "language", "genre", "unit")
    taken: dict[str, Any] = {key: getattr(found, key) for key in known}
    return replace(row, note=" ".join(filter(None, (row.note, found.note))), verdict=verdict, date=date, **taken)


def _missing(name: str) -> Estimate:
    return Estimate.undefined(name.rpartition("/")[2], NOT_MEASURED)


def _compared(
    estimate: Estimate, baseline: Estimate | None, gain: Estimate | None = None, *, lower: bool = False
) -> Verdict:
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
    named = {row.source for row in blind}
    return [
        replace(row, title=f"{row.title}: {_SAID[row.verdict]} a trivial rule", note="")
        for row in able
        if row.verdict in _SAID and row.source not in named
    ]


def worst_intents(known: Known, dates: Dates) -> list[Row]:
    """Return the intents with the lowest F1."""
    name = "embedding_pipeline"
    scores = [
        item
        for key, item in known.get(name, {}).items()
        if key.startswith("intents/") and key.count("/") > 1 and item.estimate.defined
    ]
    rows = []
    for item in sorted(scores, key=lambda item: item.estimate.value)[:_WORST]:
        title = f"Intent {item.key.split('/')[1]}: among the worst recognised"
        row = Row("Replies", title, "", item.estimate, source=f"{name}: {item.key}")
        rows.append(_measured(row, item, _compared(item.estimate, item.baseline), dates[name]))
    return rows


def open_claims(findings: Mapping[str, Finding], dates: Dates) -> list[Row]:
    """Return the claims that failed or are undecided, with the number that decides them."""
    rows = []
    for name, finding in findings.items():
        known = {item.key: item for item in finding.measurements}
        for claim in finding.claims:
            if (verdict := claim.verdict(known)) not in ("fails", "undecided"):
                continue
            found = replace(known[claim.by], baseline=Estimate(f"needed: {claim.expects}", claim.against))
            if verdict == "fails":
                found = replace(found, evidence="refuted")
            note, source = f"From: {finding.title}.", f"{name}: {claim.by}"
            note += f" Needed: {claim.basis}." if claim.basis else ""
            group = "Claims that fail" if verdict == "fails" else "Claims that are undecided"
            row = Row(group, claim.text, note, found.estimate, source=source)
            rows.append(_measured(row, found, verdict, dates[name]))
    return sorted(rows, key=lambda row: row.verdict != "fails")


def evasion_rows(finding: Finding | None, dates: Dates) -> list[Row]:
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
        for statistic, title, note in (
            ("slipped", "Slip past the lexicon", "; ".join(techniques) + "."),
            ("caught", "For comparison, plain sentences that the lexicon catches", ""),
            ("intent changed", "The intent of the sentence changes", ""),
        ):
            item = known[f"split/{split}/{statistic}"]
            title = f"{title}: {_count(item.estimate)}"
            line = Row(f"Techniques {split}", title, note, item.estimate, source=f"evasions: {item.key}")
            rows.append(_measured(line, item, "", dates["evasions"]))
    return rows


def _count(share: Estimate) -> str:
    return f"{round(share.value * share.n)} of {share.n}" if share.defined else "none to count"


def lexicon_rows(frame: pd.DataFrame) -> list[Row]:
    """Return precision by category where anybody looked, then what was only constructed, then what was refuted."""
    frame = frame.astype({"n": float, "fires": float})
    looked = frame[frame["precision"].notna() & frame["evidence"].isin(["measured", "spot-checked"])]
    rows = []
    for item in looked.drop_duplicates(["category", "lang", "corpus", "label"]).to_dict("records"):
        label, base = item["label"], None
        if item["base_rate"] == item["base_rate"]:
            base = Estimate("base rate", item["base_rate"])
        # Against labels every hit counts, in a spot check those that were read.
        number = _precision(item["precision"], item["fires"] if label else item["n"])
        title = f"{item['category']}, {_LANGUAGES[item['lang']]}, on {item['corpus']}" + (f": {label}" if label else "")
        note = "Against this label of the corpus." if label else "Hits read by one person."
        evidence = "measured" if label else item["evidence"]
        rows.append(
            Row(
                "Phrases in use", title, note, number, base, _compared(number, base), evidence, bool(item["held_out"]),
                item["lang"], item["corpus"],
            )
        )  # fmt: skip
    seen = set(zip(looked["category"], looked["lang"], strict=True))
    for lang, name in _LANGUAGES.items():
        only = [c for c in dict.fromkeys(frame["category"][frame["lang"] == lang]) if (c, lang) not in seen]
        row = Row(
            "Phrases in use",
            f"{name}, never looked at: {', '.join(only)}",
            "Written examples only.",
            _missing("precision"),
        )
        rows.append(replace(row, evidence="constructed", language=lang, genre="written sentences"))
    for item in frame[frame["evidence"] == "refuted"].to_dict("records"):
        phrase, _, reason = item["note"].partition(": ")
        number = _precision(item["precision"], item["n"])
        row = Row("Phrases taken out", f"{phrase} as {item['category']}", f"{reason[:1].upper()}{reason[1:]}.", number)
        rows.append(replace(row, evidence="refuted", language=item["lang"], genre=item["corpus"]))
    return rows


def _precision(share: float, n: float) -> Estimate:
    """Return a precision of so many hits; undefined where either was not counted (NaN)."""
    return share_estimate(share * n, int(n), "precision") if share * n == share * n else _missing("precision")


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
    if not rules:
        return {}
    keep = ("value", "low", "high", "n", "method", "status", "reason")
    inside, rival, gain = (
        Estimate(name, **{key: rules["sets"]["test"][raw][key] for key in keep})
        for raw, name in (
            ("inside", "share of scores inside their range"),
            ("constant_inside", "one score for all"),
            ("gain", "share inside less that of one score for all"),
        )
    )
    what = "a score of a whole reply, by rules"
    found = (Measurement("inside", what, inside, rival), Measurement("gain", what, gain))
    known: dict[str, Any] = {"evidence": "constructed", "language": "en, es", "genre": "assistants' replies"}
    return {item.key: replace(item, held_out=True, **known) for item in found}


def newest_day(name: str, history: Iterable[SentinelSnapshot]) -> str:
    """Return the day of the newest snapshot of a finding: its judge is called after it, or ``<finding>/<detector>``."""
    days = [item.time for item in history if item.judge_id.partition("/")[0] == name]
    return max(days).date().isoformat() if days else "–"
