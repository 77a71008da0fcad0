"""Pages of the book that are generated, so that no number on them can go stale: constants, costs, the written data, status,
and the pieces that written pages include (the picture of the first page, terms of the lexicon, tables of simulations).
"""

from __future__ import annotations

import json
import re
from collections import Counter
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from anima import provenance
from anima.authenticity import calibrate, classify, model, neighbours
from anima.authenticity.golden import annotation_agreement, load_golden
from anima.authenticity.intents import UNCLASSIFIED, catalogue
from anima.authenticity.markers import load_markers
from anima.authenticity.profiles import load_profile
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
    """Write the generated pages into the source folder of a build and return their paths.

    Parameters
    ----------
    folder
        Source folder, with the notebooks of the build in it.
    root
        Checkout, for the lock; by default the one that ``folder`` lies in.
    """
    pages = {
        "status.md": status_page(folder, root or folder.parents[1]),
        "lexicon-terms.md": lexicon_terms(),
        **start_picture(),
        "constants.md": constants_page(),
        "costs.md": costs_page(folder / "results" / "costs.json"),
        "data.md": data_page(),
        "capability-card.md": card_page(current_card()),
    }
    pages |= {
        f"changed/{name}": text for name, text in changed_statistics(folder / "results" / "coverage.json").items()
    }
    pages |= api_pages()
    for name in ("api", "changed"):
        (folder / name).mkdir(exist_ok=True)
    for name, text in pages.items():
        (folder / name).write_text(text, encoding="utf-8")
    return [folder / name for name in pages]


def api_pages() -> dict[str, str]:
    """Return the pages of the API reference by file name: an overview, and one per package, filled from the docstrings
    by Sphinx.
    """
    pages = {
        _api_document(name) + ".md": (
            f"# `{name}`\n\n```{{eval-rst}}\n.. automodule:: {name}\n   :members:\n   :show-inheritance:\n```\n"
        )
        for name in PACKAGES
    }
    rows = []
    for name in PACKAGES:
        module = import_module(name)
        names = [one for one in getattr(module, "__all__", ()) if not one.startswith("_")]
        first = " ".join((module.__doc__ or "").split("\n\n")[0].replace("``", "`").split())
        rows.append((f"{{doc}}`{name} <{name.replace('.', '-')}>`", first, len(names) or "–"))
    head = "# API reference\n\nGenerated from the docstrings. One page per package; `import anima` offers the short list of names a user types.\n"
    return {"api/index.md": f"{head}\n{table(('package', 'what it is for', 'public names'), rows)}"} | pages


def _api_document(name: str) -> str:
    return f"api/{name.replace('.', '-')}"


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


def status_page(folder: Path, root: Path) -> str:
    """Return the page on status and provenance; what was published from what stands first."""
    chapters = re.findall(r"file:\s*(\S+)", (folder / "_toc.yml").read_text(encoding="utf-8"))
    return "\n".join(
        [
            "# Status and provenance",
            "",
            "Generated with the book. Equal hashes mean equal content: the first 16 digits of SHA-256, of code without comments and docstrings.",
            "",
            "## Published findings",
            "",
            table(*provenance.finding_rows(folder, chapters)),
            "## Receipts",
            "",
            "Of the code that computed a finding, of its parameters, and of its results; the inputs follow.",
            "",
            table(*provenance.receipt_rows()),
            "## Corpora they were computed on",
            "",
            "A corpus whose files have these hashes gives these numbers; `anima corpora verify` compares.",
            "",
            table(*provenance.corpus_rows()),
            "## Run times in this build",
            "",
            table(*provenance.run_time_rows(folder)),
            "## Versions",
            "",
            "From `requirements.lock`; two versions where newer Pythons need another one.",
            "",
            table(*provenance.version_rows(root)),
            "## Data files and model",
            "",
            "Everything under `corpora/`; the trained heads of the bundled embedder lie in `models/`.",
            "",
            table(*provenance.data_rows()),
        ]
    )


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


def constants_page() -> str:
    """Return the page of constants, read from the code and data that use them."""
    service, ours = get_rules("reference"), get_rules("anima")
    profiles = sorted(path for path in data_path("profiles").glob("*.toml"))
    rows = [
        ("intent threshold (cosine)", "centroid classifiers", "per embedder, below", service.intent_threshold),
        ("pole cuts", "pole score", "per embedder, below", f"{service.pole_thresholds}"),
        ("classifier", "intents", ours.classifier, service.classifier),
        ("segmentation rule", "text", ours.segment, service.segment),
        (
            "sentences that must manage before a trajectory is assessed",
            "trajectory",
            ours.min_classified,
            service.min_classified,
        ),
        ("UNCLASSIFIED counts as control", "densities", ours.plain_is_control, service.plain_is_control),
        ("neighbours reported", "neighbours", 5, 5),
        ("similarity from which the nearest text speaks for its pool", "pools", neighbours.NEAR, neighbours.NEAR),
        ("lead from which closure counts as artificial", "pools", neighbours.LEAD, neighbours.LEAD),
        ("temperature of the texture that moves", "pools", neighbours.TEMPERATURE, "none"),
        ("n-gram length of keywords", "keywords", "1 to 4", "1 to 4"),
        ("centroids per intent of `centroids`", "intents", model.PER_INTENT, "1"),
        ("weight of a marker at opening or closing", "markers", "× 1.15", "× 1.15"),
        ("severity cuts", "markers", "high ≥ 0.75, medium ≥ 0.60", "high ≥ 0.75, medium ≥ 0.60"),
        (
            "calibration grid",
            "calibration",
            f"{calibrate.DEFAULT_GRID[0]} to {calibrate.DEFAULT_GRID[-1]}",
            "0.20 to 0.70, step 0.05",
        ),
    ]
    thresholds = []
    for path in profiles:
        profile = load_profile(path.stem, fallback=lambda: _no_profile())
        thresholds.append(
            (
                f"`{profile.embedder}`",
                f"{profile.intent_threshold:.3f}",
                f"{profile.pole_low:+.4f}",
                f"{profile.pole_high:+.4f}",
                " ".join(profile.obtained.split()),
            )
        )
    markers = [(f"`{m.id}`", m.pattern, m.weight, m.note) for m in load_markers()]
    intents = [
        (f"`{i.name}`", i.regime, f"`{i.next}`" if i.next else "anything", i.gloss) for i in catalogue().values()
    ]
    return "\n".join(
        [
            "# Constants",
            "",
            'Generated from the code and data files at build time. *Service* is the reference service (`rules="reference"`).',
            "",
            table(("constant", "used by", "anima", "service"), rows),
            "## Thresholds by embedder",
            "",
            table(("embedder", "intent threshold", "pole low", "pole high", "how obtained"), thresholds),
            f"The classifiers are {', '.join(f'`{name}`' for name in classify.CLASSIFIERS)}; the heads have no threshold,",
            "because UNCLASSIFIED is one of their labels.",
            "",
            "## Intents and their usual successors",
            "",
            table(("intent", "regime", "usually followed by", "what the sentence does"), intents),
            "## Formal markers",
            "",
            table(("marker", "speaks of", "weight", "what it is"), markers),
        ]
    )


def _no_profile() -> Any:
    raise DataError("a profile vanished while its page was written")


def costs_page(path: Path) -> str:
    """Return the page of costs per stage from the committed measurement."""
    try:
        measured = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, json.JSONDecodeError) as error:
        raise DataError(
            f"{path}: no measured costs ({error}); run tests/benchmarks/bench_pipeline.py --write"
        ) from error
    rows = [
        (row["stage"], f"{row['ms_per_reply']:.2f}", f"{row['share']:.0%}", row["note"]) for row in measured["stages"]
    ]
    return "\n".join(
        [
            "# Costs per stage",
            "",
            f"Measured, not estimated: {measured['replies']} replies of five sentences, {measured['machine']}, one thread,",
            f"median of {measured['repeats']} runs.",
            "Times depend on the machine and are not part of any test; what does not depend on it is their order of size.",
            "",
            table(("stage", "ms per reply", "share", "note"), rows),
            measured["remark"],
            "",
        ]
    )


def changed_statistics(path: Path) -> dict[str, str]:
    """Return the tables and the figure of the simulations by file name, from the committed results."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, json.JSONDecodeError) as error:
        raise DataError(f"{path}: no simulations ({error}); run tests/stats/write_coverage.py") from error
    rows = [dict(zip(found["columns"], row, strict=True)) for row in found["coverage"]]
    files = {
        f"{name}.md": table(entry["head"], [[_cell(value) for value in row] for row in entry["rows"]])
        + (f"\n{entry['trials']:,} trials each; ± is one Monte-Carlo standard error.\n" if entry["trials"] else "")
        for name, entry in found["comparisons"].items()
    }
    promised = [row for row in rows if row["kept"] is not None]
    kept = sum(row["kept"] for row in promised)
    head = ("statistic", "n", "interval", "settings", "coverage, lowest to highest", "promised")
    files["summary.md"] = table(head, [_coverage_summary(group) for group in _grouped(rows)]) + (
        f"\n{kept} of {len(promised)} promises are kept within two Monte-Carlo standard errors.\n"
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


def data_page() -> str:
    """Return the page about the written data: how much there is and how far two annotators agree."""
    reference = Reference.bundled()
    prototypes = Counter((example.intent == UNCLASSIFIED, example.lang) for example in reference.prototypes)
    counts = [
        ("prototypes", prototypes[False, "en"], prototypes[False, "es"], "labelled single sentences, 20 intents"),
        ("plain sentences", prototypes[True, "en"], prototypes[True, "es"], "content that manages nobody"),
        (
            "training replies",
            *(sum(r.lang == lang for r in reference.replies) for lang in ("en", "es")),
            "whole replies, labelled by sentence",
        ),
        (
            "pool texts",
            *(sum(e.lang == lang for e in reference.pools) for lang in ("en", "es")),
            "core, shadow, edge, with notes and five axes",
        ),
    ]
    for name in ("dev", "test"):
        golden = load_golden(name)
        counts.append(
            (
                f"golden {name}",
                *(sum(r.lang == lang for r in golden) for lang in ("en", "es")),
                "whole replies, never trained on",
            )
        )
    agreement = [
        (row.name, row.n, row.n_disputed, f"{row.agreement:.3f}", f"{row.kappa:.3f}") for row in annotation_agreement()
    ]
    return "\n".join(
        [
            "# The written data",
            "",
            "Everything the instrument compares with was written for this project, in English and Spanish, and labelled twice. The guide both",
            "annotators worked from is part of the repository (`corpora/annotation-guide.md`).",
            "",
            table(("set", "English", "Spanish", "what it is"), counts),
            "## Agreement of the two annotators",
            "",
            table(("set", "items", "disputed", "agreement", "Cohen's κ"), agreement),
            "Disputed items are not used: a disputed prototype is dropped, a disputed golden sentence is not scored. They are kept, with both labels,",
            "in `corpora/disputed.jsonl`.",
            "",
            ":::{warning}",
            "Writers and annotators were language models working apart from each other. Such agreement says that the guide can be followed",
            "consistently by that kind of reader, no more: the texts were written to show their label, which makes them clearer than real replies, and",
            "human annotators would agree less. Label a sample of your own replies, and validate against it, before resting a claim on the instrument.",
            ":::",
            "",
        ]
    )
