"""Parts of the book that are generated, so that no number in them can go stale.

The written pages of the book include them: tables of constants, costs, written data and provenance, of simulations, the
picture of the first page, terms of the lexicon. The capability card and the API reference are generated whole.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections import Counter
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from anima import provenance
from anima.authenticity import calibrate, classify, instrument, markers, model, neighbours
from anima.authenticity.golden import annotation_agreement, load_golden
from anima.authenticity.intents import UNCLASSIFIED, catalogue
from anima.authenticity.reference import Reference
from anima.authenticity.rules import get_rules
from anima.card import card_page, current_card
from anima.errors import DataError
from anima.findings import compare_findings
from anima.lexicon import load_lexicon
from anima.settings import data_path

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from anima.findings import Finding


#: Packages of the API reference, in the order of its chapters.
PACKAGES: Final = (
    "anima", "anima.authenticity", "anima.lexicon", "anima.negation", "anima.corpora", "anima.detectors", "anima.judge",
    "anima.metaeval", "anima.stats", "anima.embedding", "anima.text", "anima.plots", "anima.findings", "anima.card",
    "anima.widgets", "anima.errors",
)  # fmt: skip

#: The reply that the first page shows: praise, content, both sides, an open point, a closing.
EXAMPLE: Final = (
    "What a thoughtful question! A fixed rate costs about 0.4 points more today. "
    "On the one hand stability is valuable, on the other flexibility has its charm too. "
    "I don't know how your income will develop, and that is the number that decides it. I hope this helps!"
)


def write_generated_pages(folder: Path, root: Path | None = None) -> list[Path]:
    """Write the generated parts into the source folder of a build and return their paths.

    Parameters
    ----------
    folder
        Source folder, with the notebooks of the build in it.
    root
        Checkout, for the lock; by default the one that ``folder`` lies in.
    """
    chapters = re.findall(r"file:\s*(\S+)", (folder / "_toc.yml").read_text(encoding="utf-8"))
    tables = {
        **constant_tables(),
        **data_tables(),
        "costs": costs_table(folder / "results" / "costs.json"),
        "findings": table(*provenance.finding_rows(folder, chapters)),
        "receipts": table(*provenance.receipt_rows()),
        "corpora": table(*provenance.corpus_rows()),
        "run-times": table(*provenance.run_time_rows(folder)),
        "versions": table(*provenance.version_rows(root or folder.parents[1])),
        "data-files": table(*provenance.data_rows()),
    }
    changed = changed_statistics(folder / "results" / "coverage.json")
    pages = {
        **start_picture(),
        "lexicon-terms.md": lexicon_terms(),
        "capability-card.md": card_page(current_card()),
        **{f"tables/{name}.md": text for name, text in tables.items()},
        **{f"changed/{name}": text for name, text in changed.items()},
        **api_pages(),
    }
    for name, text in pages.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return [folder / name for name in pages]


def api_pages() -> dict[str, str]:
    """Return the API reference by file name: an overview, and a page per package that Sphinx fills from docstrings."""
    pages, rows = {}, []
    for name in PACKAGES:
        module, file = import_module(name), name.replace(".", "-")
        names = [one for one in getattr(module, "__all__", ()) if not one.startswith("_")]
        first = " ".join((module.__doc__ or "").split("\n\n")[0].replace("``", "`").split())
        rows.append((f"{{doc}}`{name} <{file}>`", first, len(names) or "–"))
        body = f".. automodule:: {name}\n   :members:\n   :show-inheritance:"
        pages[f"api/{file}.md"] = f"# `{name}`\n\n```{{eval-rst}}\n{body}\n```\n"
    head = "# API reference\n\nGenerated from the docstrings. One page per package; `import anima` offers the short list of names a user types.\n"
    return {"api/index.md": f"{head}\n{table(('package', 'what it is for', 'public names'), rows)}"} | pages


def start_picture() -> dict[str, str]:
    """Return the picture of the first page and the figure that shows it, by file name."""
    from anima.api import analyze
    from anima.plots.theme import chart_svg

    analysis = analyze(EXAMPLE)
    regimes = [f"“{step.phrase}” is read as {step.intent} ({step.regime})" for step in analysis.steps]
    alt = f"Bar chart of the {len(regimes)} sentences of a written reply. {'; '.join(regimes)}. {analysis.summary()}"
    close = min(analysis.steps, key=lambda step: step.margin)
    figure = [
        "```{figure} start.svg",
        f":alt: {json.dumps(alt, ensure_ascii=False)}",
        ":width: 100%",
        "A reply written for this page, as `anima.analyze(reply).plot()` draws it: what each sentence does to its reader, and how clearly.",
        "Warm colours manage the reader, blue ones are open about what is not known, grey only informs.",
        f"The closest call is sentence {close.index + 1}: {close.intent} leads {close.runner_up} by {close.margin:.2f}.",
        "```",
    ]
    return {"start.svg": chart_svg(analysis.plot().to_dict()), "start.md": "\n".join(figure) + "\n"}


def lexicon_terms() -> str:
    """Return the categories and registers of the lexicon as a glossary, with their names in the Spanish source."""
    lexicon = load_lexicon()
    groups = (("Category", lexicon.categories), ("Register", lexicon.registers))
    entries = [
        f"{item.name}\n  *{item.alias}.* {kind} of the lexicon: {item.meaning}.\n"
        for kind, items in groups
        for item in sorted(items.values(), key=lambda item: item.name)
    ]
    return "\n".join([":::{glossary}", *entries, ":::", ""])


def table(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Return a Markdown table."""
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    lines += ["| " + " | ".join(str(cell).replace("|", "\\|") for cell in row) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def published_box(found: Finding, rerun: Finding | None) -> str:
    """Return the box that opens the page of a finding: what was published, on which data, and how a rerun compares."""
    corpora = ", ".join(
        f"{item.name} ({item.dialogues:,} dialogues, {item.utterances:,} utterances, hash `{item.hash[:16]}`)"
        for item in found.materials
    )
    claims = found.verdicts()
    lines = [
        ":::{admonition} Published result",
        ":class: important",
        found.summary(),
        "",
        table(("claim", "verdict", "decided by"), claims.to_numpy().tolist()) if len(claims) else "",
        f"Computed on {corpora}." if corpora else "",
        f"Receipt: code `{found.receipt.sources}`, results `{found.receipt.outputs}`.",
    ]
    if rerun is not None:
        lines += ["", f"The run shown below: {compare_findings(found, rerun).summary()}"]
    return "\n".join([*lines, ":::"])


def differences_page(old: Finding, new: Finding) -> str:
    """Return what a rerun differs in from the published finding, number by number."""
    found = compare_findings(old, new)
    changed = [*found.changed, *(f"gone: {key}" for key in found.missing), *(f"new: {key}" for key in found.added)]
    sides = [
        {key: finding.parameters.get(key) for key in {**old.parameters, **new.parameters}} for finding in (old, new)
    ]
    parameters = [(key, was, sides[1][key]) for key, was in sides[0].items() if was != sides[1][key]]
    verdicts = new.verdicts().merge(old.verdicts(), on="claim", how="outer", suffixes=("", " published")).fillna("none")
    rows = sorted(found.differences, key=lambda item: item.within)
    numbers = [(f"`{d.key}`", f"{d.published:.4f}", f"{d.rerun:.4f}", "yes" if d.within else "**no**") for d in rows]
    parts = [
        f"# {old.title}: this run beside the published one",
        found.summary(),
        "\n".join(f"- differs in: {item}" for item in changed),
        table(("parameter", "published", "this run"), parameters) if parameters else "",
        table(("claim", "published", "this run"), verdicts[["claim", "verdict published", "verdict"]].values),
        table(("measurement", "published", "this run", "within tolerance"), numbers),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def constant_tables() -> dict[str, str]:
    """Return the tables of constants by name, read from the code and data that use them."""

    def both(value: object) -> tuple[object, object]:
        return value, value

    service, ours = get_rules("reference"), get_rules("anima")
    grid = calibrate.DEFAULT_GRID
    severity = f"high ≥ {markers.HIGH:.2f}, medium ≥ {markers.MEDIUM:.2f}"
    rows = [
        ("intent threshold (cosine)", "centroid classifiers", "per embedder, below", service.intent_threshold),
        ("pole cuts", "pole score", "per embedder, below", service.pole_thresholds),
        ("classifier", "intents", ours.classifier, service.classifier),
        ("segmentation rule", "text", ours.segment, service.segment),
        ("sentences that must manage before a trajectory is assessed", "trajectory", ours.min_classified, service.min_classified),
        ("UNCLASSIFIED counts as control", "densities", ours.plain_is_control, service.plain_is_control),
        ("neighbours reported", "neighbours", *both(instrument.Settings().k)),
        ("similarity from which the nearest text speaks for its pool", "pools", neighbours.NEAR, neighbours.NEAR),
        ("lead from which closure counts as artificial", "pools", neighbours.LEAD, neighbours.LEAD),
        ("temperature of the texture that moves", "pools", neighbours.TEMPERATURE, "none"),
        ("n-gram length of keywords", "keywords", *both(f"1 to {instrument.MAX_NGRAM}")),
        ("centroids per intent of `centroids`", "intents", model.PER_INTENT, "1"),
        ("weight of a marker at opening or closing", "markers", *both(f"× {markers.EDGE_FACTOR}")),
        ("severity cuts", "markers", *both(severity)),
        ("calibration grid", "calibration", *both(f"{grid[0]:.2f} to {grid[-1]:.2f}, step {grid[1] - grid[0]:.2f}")),
    ]  # fmt: skip
    thresholds = []
    for path in sorted(data_path("profiles").glob("*.toml")):
        found = tomllib.loads(path.read_text(encoding="utf-8"))
        cuts = f"{found['pole_low']:+.4f}", f"{found['pole_high']:+.4f}"
        obtained = " ".join(found["obtained"].split())
        thresholds.append((f"`{path.stem}`", f"{found['intent_threshold']:.3f}", *cuts, obtained))
    intents = [
        (f"`{i.name}`", i.regime, f"`{i.next}`" if i.next else "anything", i.gloss) for i in catalogue().values()
    ]
    found_by = [(f"`{m.id}`", m.pattern, m.weight, m.note) for m in markers.load_markers()]
    names = ", ".join(f"`{name}`" for name in classify.CLASSIFIERS)
    return {
        "constants": table(("constant", "used by", "anima", "service"), rows),
        "thresholds": table(("embedder", "intent threshold", "pole low", "pole high", "how obtained"), thresholds)
        + f"\nThe classifiers are {names}; the heads have no threshold, because UNCLASSIFIED is one of their labels.\n",
        "intents": table(("intent", "regime", "usually followed by", "what the sentence does"), intents),
        "markers": table(("marker", "speaks of", "weight", "what it is"), found_by),
    }


def data_tables() -> dict[str, str]:
    """Return the tables on the written data by name: how much there is, and how far two annotators agree."""
    reference, langs = Reference.bundled(), ("en", "es")
    sets: list[tuple[str, Iterable[Any], str]] = [
        ("prototypes", [e for e in reference.prototypes if e.intent != UNCLASSIFIED], "labelled single sentences, 20 intents"),
        ("plain sentences", [e for e in reference.prototypes if e.intent == UNCLASSIFIED], "content that manages nobody"),
        ("training replies", reference.replies, "whole replies, labelled by sentence"),
        ("pool texts", reference.pools, "core, shadow, edge, with notes and five axes"),
        ("golden dev", load_golden("dev"), "whole replies, never trained on"),
        ("golden test", load_golden("test"), "whole replies, never trained on"),
    ]  # fmt: skip
    counts = []
    for name, items, what in sets:
        found = Counter(item.lang for item in items)
        counts.append((name, *(found[lang] for lang in langs), what))
    agreement = [
        (row.name, row.n, row.n_disputed, f"{row.agreement:.3f}", f"{row.kappa:.3f}") for row in annotation_agreement()
    ]
    return {
        "data": table(("set", "English", "Spanish", "what it is"), counts),
        "agreement": table(("set", "items", "disputed", "agreement", "Cohen's κ"), agreement),
    }


def costs_table(path: Path) -> str:
    """Return the costs per stage from the committed measurement, and how they were measured."""
    measured = _committed(path, "no measured costs", "tests/benchmarks/bench_pipeline.py --write")
    rows = [
        (row["stage"], f"{row['ms_per_reply']:.2f}", f"{row['share']:.0%}", row["note"]) for row in measured["stages"]
    ]
    how = f"{measured['replies']} replies of five sentences, {measured['machine']}, one thread, median of {measured['repeats']} runs."
    return f"{how}\n\n{table(('stage', 'ms per reply', 'share', 'note'), rows)}\n{measured['remark']}\n"


def _committed(path: Path, what: str, command: str) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, json.JSONDecodeError) as error:
        raise DataError(f"{path}: {what} ({error}); run {command}") from error


def changed_statistics(path: Path) -> dict[str, str]:
    """Return the tables and the figure of the simulations by file name, from the committed results."""
    found = _committed(path, "no simulations", "tests/stats/write_coverage.py")
    rows = [dict(zip(found["columns"], row, strict=True)) for row in found["coverage"]]
    files = {
        f"{name}.md": table(entry["head"], [[_cell(value) for value in row] for row in entry["rows"]])
        + (f"\n{entry['trials']:,} trials each; ± is one Monte-Carlo standard error.\n" if entry["trials"] else "")
        for name, entry in found["comparisons"].items()
    }
    promised = [row["kept"] for row in rows if row["kept"] is not None]
    head = ("statistic", "n", "interval", "settings", "coverage, lowest to highest", "promised")
    files["summary.md"] = table(head, [_coverage_summary(group) for group in _grouped(rows)]) + (
        f"\n{sum(promised)} of {len(promised)} promises are kept within two Monte-Carlo standard errors.\n"
    )
    columns = ("data", "n", "true value", "interval", "trials", "coverage", "undefined", "marked unreliable")
    parts = []
    for statistic in dict.fromkeys(row["statistic"] for row in rows):
        chosen = [
            (
                *(row["data"], row["n"], f"{row['truth'] + 0.0:.3f}", row["interval"], row["trials"]),
                *(_cell([row["coverage"], row["mc_error"]]), f"{row['undefined']:.1%}", f"{row['unreliable']:.1%}"),
            )
            for row in rows
            if row["statistic"] == statistic
        ]
        parts.append(f":::{{dropdown}} {statistic}: {len(chosen)} settings\n{table(columns, chosen)}:::\n")
    return files | {"coverage.md": "\n".join(parts), "coverage.svg": _coverage_figure(rows)}


def _cell(value: Any) -> str:
    """Return a cell of a simulation as text: a pair is a share and its error."""
    if isinstance(value, list):
        return f"{value[0]:.1%} ± {value[1] * 100:.1f}".replace(" ", "\N{NO-BREAK SPACE}")
    return f"{value:.3f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)


def _grouped(rows: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    keys = ("statistic", "n", "interval", "promised_low")
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault(tuple(row[key] for key in keys), []).append(row)
    return sorted(groups.values(), key=lambda group: (group[0]["statistic"], group[0]["n"], group[0]["kept"] is None))


def _coverage_summary(group: list[dict[str, Any]]) -> tuple[str, ...]:
    first, shares = group[0], [row["coverage"] for row in group]
    promise = "nothing, for comparison"
    if first["kept"] is not None:
        low, high = first["promised_low"], first["promised_high"]
        promise = f"{low:.0%} or more" if high >= 1 else f"{low:.1%} to {high:.1%}"
        promise += f", kept by {sum(row['kept'] for row in group)}"
    span = f"{min(shares):.1%} to {max(shares):.1%} (± {max(row['mc_error'] for row in group) * 100:.1f})"
    return (first["statistic"], str(first["n"]), first["interval"], str(len(group)), span, promise)


def _coverage_figure(rows: list[dict[str, Any]]) -> str:
    """Return the coverage of every setting as SVG: one point each, intervals without a promise apart."""
    import altair as alt
    import pandas as pd

    from anima.plots.theme import MUTED, chart_svg, theme_config

    kinds = ["default interval", "shown for comparison"]
    rows = sorted(rows, key=lambda row: (row["statistic"], row["n"]))
    frame = pd.DataFrame({
        "statistic": [f"{row['statistic']}, n = {row['n']}" for row in rows],
        "coverage": [row["coverage"] for row in rows],
        "kind": [kinds[row["kept"] is None] for row in rows],
    })  # fmt: skip
    share, title = alt.Scale(domain=[0.8, 1]), "share of intervals that hold the true value"
    points = (
        alt.Chart(frame)
        .mark_point(opacity=0.55, size=42)
        .encode(
            x=alt.X("coverage:Q", title=title, scale=share, axis=alt.Axis(format="%")),
            y=alt.Y("statistic:N", title=None, sort=None),
            color=alt.Color("kind:N", title=None, sort=kinds),
            shape=alt.Shape("kind:N", legend=None, sort=kinds),
        )
    )
    aim = alt.Chart(pd.DataFrame({"x": [0.95]})).mark_rule(color=MUTED, strokeDash=[4, 3])
    aim = aim.encode(x=alt.X("x:Q", title=title, scale=share))
    chart = (points + aim).properties(width=460, height=22 * frame["statistic"].nunique())
    return chart_svg(chart.to_dict() | {"config": theme_config()})
