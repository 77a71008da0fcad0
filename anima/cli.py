"""The command line: thin over the API."""

from __future__ import annotations

import errno
import io
import json
import os
import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TextIO, cast

import typer

import anima
from anima.checks import require_choice, require_text
from anima.errors import AnimaError, DataError, DataWarning, InputError

if TYPE_CHECKING:
    from rich.console import Console

    from anima.judge.prompt import NotesLang

app = typer.Typer(
    name="anima",
    help="Measure how a model's reply manages its reader, and whether any such score means something.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

corpora = typer.Typer(help="List, fetch and verify the external corpora.", no_args_is_help=True)
app.add_typer(corpora, name="corpora")

Embedder = Annotated[str | None, typer.Option(help="bundled, ollama:MODEL[@URL] or openai:MODEL@URL.")]
Rules = Annotated[str, typer.Option(help="anima or reference.")]
Classifier = Annotated[str | None, typer.Option(help="centroid, centroids, linear or hybrid; default: the rules' own.")]
_JUDGES = "ollama[:MODEL[@URL]], openai:MODEL@URL, or rules (a fall-back without a language model)"
Lang = Annotated[str, typer.Option(help="Language of the judge's notes: en or es.")]


def main() -> None:
    """Run the command line; an expected error is one line on stderr and exit code 2."""
    warnings.showwarning = _show_warning
    for stream in (sys.stdout, sys.stderr):  # a terminal that is not UTF-8 shows "?" for what it cannot draw
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    try:
        app()
    except AnimaError as error:
        typer.echo(f"anima: {error}", err=True)
        raise SystemExit(2) from None
    except BrokenPipeError:  # the reader, e.g. `head`, has seen enough
        sys.stderr.close()
        raise SystemExit(0) from None
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EIO, errno.EDQUOT):  # what a full or broken disk says of any output
            raise
        typer.echo(f"anima: the output cannot be written ({error.strerror})", err=True)
        _discard(sys.stdout)
        raise SystemExit(2) from None


def _discard(stream: TextIO) -> None:
    """Point a stream at nothing, or the interpreter would fail on what the stream still holds when it ends."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, stream.fileno())
    os.close(null)


def _show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    """Show a warning as one line, without the line of code that is of no use to a user of the command line."""
    typer.echo(f"anima: warning: {message}", err=True)


@app.callback(invoke_without_command=True)
def root(version: Annotated[bool, typer.Option("--version", help="Show the version.")] = False) -> None:
    """Answer --version."""
    if version:
        typer.echo(anima.__version__)
        raise typer.Exit


@app.command()
def analyze(
    text: Annotated[str | None, typer.Argument(help="The reply; '-' or nothing reads standard input.")] = None,
    file: Annotated[Path | None, typer.Option(help="Read the reply from a UTF-8 file.")] = None,
    jsonl: Annotated[
        Path | None, typer.Option(help="Analyse every line of a JSONL file ('-' for standard input).")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Write to this file instead of standard output.")] = None,
    field: Annotated[str, typer.Option(help="Field of the JSONL lines that holds the reply.")] = "response",
    question: Annotated[str | None, typer.Option(help="What was asked.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="JSON instead of a picture.")] = False,
    keywords: Annotated[bool, typer.Option(help="Compute each sentence's keyword (slow).")] = False,
    judge: Annotated[str | None, typer.Option(help=f"Give a verdict as well: {_JUDGES}.")] = None,
    lang: Lang = "en",
    embedder: Embedder = None,
    rules: Rules = "anima",
    classifier: Classifier = None,
) -> None:
    """Say how one reply, or each reply of a file, manages its reader."""
    options: dict[str, Any] = {"embedder": embedder, "rules": rules, "classifier": classifier}
    options |= {"judge": judge, "lang": lang}
    mode: Literal["eager", "off"] = "eager" if keywords else "off"
    given = [name for name, value in (("TEXT", text), ("--file", file), ("--jsonl", jsonl)) if value is not None]
    if len(given) > 1:
        raise InputError(f"give one of TEXT, --file and --jsonl, not {' and '.join(given)}")
    if jsonl is not None:
        if question is not None:
            raise InputError("--question is for one reply: with --jsonl give each line a field 'question'")
        _analyze_lines(jsonl, out, field, mode, options)
        return
    result = anima.analyze(_read_reply(text, file), question, keywords=mode, **options)
    if as_json or (out is not None and out.suffix == ".json"):
        _write(json.dumps(result.to_dict(), ensure_ascii=False, indent=2) + "\n", out)
        return
    from rich.console import Console

    from anima.authenticity.render import analysis_rich

    page = io.StringIO()
    console = Console() if out is None else Console(file=page, width=100)
    console.print(analysis_rich(result))
    if result.verdict is not None:
        _print_verdict(result.verdict, console)
    if out is not None:
        _write(page.getvalue(), out)


def _print_verdict(verdict: Any, console: Console) -> None:
    """Print what a judge said, as it may be shown: secrets and control characters taken out."""
    from rich.rule import Rule
    from rich.text import Text

    from anima.authenticity.render.pieces import visible

    safe = verdict.redacted()
    lines = [safe.summary()]
    for name in safe.shown:
        value = getattr(safe, name)
        items = value if isinstance(value, tuple) else (value,) if value else ()
        lines += [f"{name.replace('_', ' ')}: {item}" for item in items]
    console.print("", Rule("Verdict", align="left", style="dim"), Text(visible("\n".join(lines))), sep="\n")


def _read_reply(text: str | None, file: Path | None) -> str:
    if file is not None:
        return _decode(_bytes(file), str(file))
    if text is not None and text != "-":
        return _decode(os.fsencode(text), "TEXT")  # the shell's bytes, whatever the locale made of them
    if sys.stdin is None or sys.stdin.isatty():
        raise InputError(
            'nothing to analyse: give the reply as an argument, with --file, or on standard input, e.g. anima analyze "Great question!"'
        )
    return _decode(sys.stdin.buffer.read(), "standard input")


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror})") from error


def _decode(raw: bytes, name: str) -> str:
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(f"{name}: not UTF-8 at byte {error.start}; convert it, e.g. iconv -f latin1 -t utf-8") from None


def _analyze_lines(path: Path, out: Path | None, field: str, mode: Any, options: dict[str, Any]) -> None:
    name = "standard input" if str(path) == "-" else str(path)
    raw = sys.stdin.buffer.read() if str(path) == "-" else _bytes(path)
    rows: list[dict[str, Any]] = []
    for number, line in enumerate(_decode(raw, name).split("\n"), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line, parse_constant=_no_constant)
        except json.JSONDecodeError as error:
            raise DataError(f"{name}:{number}: not JSON ({error.msg} at column {error.colno})") from None
        except (ValueError, RecursionError) as error:
            raise DataError(f"{name}:{number}: not usable JSON ({error})") from None
        if not isinstance(row, dict) or not isinstance(row.get(field), str):
            raise DataError(
                f"{name}:{number}: must be an object with a string field {field!r}; name another field with --field"
            )
        for key in (field, "question"):
            if row.get(key) is not None:
                try:
                    require_text(row[key], f"field {key!r}")
                except InputError as error:
                    raise DataError(f"{name}:{number}: {error}") from None
        rows.append(row)
    questions = [row.get("question") for row in rows]
    # The bar goes to stderr, and only to a person: standard output stays clean JSONL.
    analyses = anima.analyze_many(
        [row[field] for row in rows], questions, keywords=mode, progress=sys.stderr.isatty(), **options
    )
    lines = []
    replaced: set[str] = set()
    for row, analysis in zip(rows, analyses, strict=True):
        kept = {key: value for key, value in row.items() if key not in (field, "question")}
        result = analysis.to_dict()
        if not kept.keys() >= result.keys() - {
            "response",
            "question",
            "verdict",
        }:  # else the line is an analysis, made anew
            replaced |= kept.keys() & result.keys()
        lines.append(json.dumps(kept | result, ensure_ascii=False) + "\n")
    if replaced:
        names = ", ".join(map(repr, sorted(replaced)))
        warnings.warn(
            f"{name}: the analysis has fields of its own called {names}: the file's are left out",
            DataWarning,
            stacklevel=2,
        )
    _write("".join(lines), out)


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON: write null")


def _write(text: str, out: Path | None) -> None:
    if out is None:
        typer.echo(text.encode(), nl=False)  # UTF-8 whatever the terminal's encoding: JSON is
        return
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(text, encoding="utf-8")
    except OSError as error:
        raise DataError(f"{out}: cannot be written ({error.strerror})") from error


@app.command()
def refine(
    question: Annotated[str, typer.Argument(help="The question to rewrite.")],
    judge: Annotated[str, typer.Option(help=f"Who rewrites: {_JUDGES}.")] = "ollama",
    lang: Lang = "en",
    as_json: Annotated[bool, typer.Option("--json", help="Everything as JSON.")] = False,
) -> None:
    """Rewrite a question so that it no longer invites a managed reply; who did it, and why, goes to stderr."""
    found = anima.refine(_decode(os.fsencode(question), "QUESTION"), judge=judge, lang=cast("NotesLang", lang))
    if as_json:
        _write(json.dumps(found.to_dict(), ensure_ascii=False, indent=2) + "\n", None)
        return
    from anima.judge.sanitize import sanitize

    typer.echo(f"anima: {sanitize(found.summary())}", err=True)
    _write(found.refined + "\n", None)


@app.command()
def serve(
    judge: Annotated[str, typer.Option(help=f"Who judges: {_JUDGES}.")] = "ollama",
    host: Annotated[
        str, typer.Option(help="Address to listen on; another than this machine's own needs --name.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on.")] = 8081,
    name: Annotated[
        list[str] | None, typer.Option(help="Name by which callers know the server, repeatable; others are refused.")
    ] = None,
    origin: Annotated[
        list[str] | None, typer.Option(help="Web origin whose pages may call the server, repeatable; none by default.")
    ] = None,
    lang: Lang = "en",
) -> None:
    """Answer over HTTP until interrupted; on this machine only unless told otherwise (needs the extra `serve`)."""
    from anima.judge.serve import serve as run

    settings: dict[str, Any] = {"hosts": name} if name else {}
    typer.echo(f"anima: serving at http://{host}:{port}/; Ctrl+C ends it", err=True)
    run(host, port, judge, lang=lang, origins=origin or [], **settings)


@app.command()
def calibrate(
    golden: Annotated[str, typer.Option(help="dev, or a golden file of your own.")] = "dev",
    target: Annotated[str, typer.Option(help="intent, poles or both.")] = "both",
    write: Annotated[
        bool, typer.Option(help="Write the profile to the user's cache folder, where it takes precedence.")
    ] = False,
    embedder: Embedder = None,
) -> None:
    """Choose the thresholds of an embedder on a golden set."""
    from rich.console import Console

    from anima.authenticity.calibrate import Target
    from anima.authenticity.calibrate import calibrate as run
    from anima.authenticity.profiles import profile_name
    from anima.settings import user_cache_dir

    sweeps: dict[str, tuple[Target, ...]] = {"intent": ("intent",), "poles": ("poles",), "both": ("intent", "poles")}
    require_choice(target, "target", tuple(sweeps))
    instrument = anima.instrument(embedder=embedder)
    console = Console()
    profile = None
    for name in sweeps[target]:
        found = run(instrument, golden, target=name)
        if profile is not None:  # keep what the first sweep found
            found = found.with_profile(profile)
        profile = found.profile
        console.print(found.summary())
    if profile is None:
        return
    if write:
        path = user_cache_dir() / "profiles" / profile_name(instrument.embedder.id)
        _write(profile.to_toml(), path)
        console.print(f"written to {path}")
    else:
        console.print(profile.to_toml(), markup=False)


@app.command()
def run(
    name: Annotated[str, typer.Argument(help="Notebook, with or without its number, e.g. embedding_pipeline.")],
    parameter: Annotated[list[str] | None, typer.Option("--parameter", "-p", help="name=value, repeatable.")] = None,
    out: Annotated[Path, typer.Option(help="Folder for the executed notebook.")] = Path("build/runs"),
) -> None:
    """Rerun a notebook with papermill, with parameters of your own, and say what differs from the published run."""
    from anima.publish import notebook_parameters, notebook_path, read_parameters, run_notebook

    path = notebook_path(name)
    known = notebook_parameters(path)
    chosen = read_parameters(parameter or [], known)
    short, folder = path.stem.split("_", 1)[-1], out.resolve()
    result = folder / str((known | chosen).get("results", "results")) / f"{short}.json"
    result.unlink(missing_ok=True)  # what an earlier run left is no result of this one
    typer.echo(f"{path.stem}: {run_notebook(path, folder / path.name, chosen)}")
    if result.is_file():
        _say_differences(short, result, folder / f"{short}-differences.md")


def _say_differences(name: str, result: Path, report: Path) -> None:
    """Compare a rerun with the published finding: a sentence here, everything in a page."""
    from anima.findings import compare_findings, published, read_finding
    from anima.pages import table

    old = published(name)
    if old is None:
        typer.echo(f"{name}: no full-corpus result is published, so there is nothing to compare with")
        return
    new = read_finding(result)
    found = compare_findings(old, new)
    changed = [*found.changed, *(f"gone: {key}" for key in found.missing), *(f"new: {key}" for key in found.added)]
    parameters = [
        (key, old.parameters.get(key), new.parameters.get(key))
        for key in {**old.parameters, **new.parameters}
        if old.parameters.get(key) != new.parameters.get(key)
    ]
    rows = sorted(found.differences, key=lambda item: item.within)
    verdicts = new.verdicts().merge(old.verdicts(), on="claim", how="outer", suffixes=("", " published")).fillna("none")
    parts = [
        f"# {old.title}: this run beside the published one",
        found.summary(),
        "\n".join(f"- differs in: {item}" for item in changed),
        table(("parameter", "published", "this run"), parameters) if parameters else "",
        table(
            ("claim", "published", "this run"), verdicts[["claim", "verdict published", "verdict"]].to_numpy().tolist()
        ),
        table(
            ("measurement", "published", "this run", "within tolerance"),
            [(f"`{d.key}`", f"{d.published:.4f}", f"{d.rerun:.4f}", "yes" if d.within else "**no**") for d in rows],
        ),
    ]
    _write("\n\n".join(part for part in parts if part) + "\n", report)
    typer.echo(f"{found.summary()} Number by number: {report}")


@app.command()
def book(execute: Annotated[bool, typer.Option(help="Run the notebooks first.")] = True) -> None:
    """Run every notebook and build the book."""
    from anima.publish import build_book

    typer.echo(f"the book: {build_book(execute=execute)}")


@app.command()
def card(
    format: Annotated[  # noqa: A002
        str | None, typer.Option(help="terminal, markdown, html or json; default: by the file's suffix.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Write to this file instead of standard output.")] = None,
) -> None:
    """Show the capability card: what the instrument can and cannot do, from the published results."""
    from anima.card import card_command

    card_command(format, out)


@corpora.command("list")
def list_corpora() -> None:
    """Say what each corpus is, its licence, where it is published, and whether it is on this machine."""
    from rich.console import Console
    from rich.table import Column, Table

    from anima.corpora import registry

    table = Table("name", "what", "licence", Column("published at", overflow="fold"), "here", box=None)
    for item in registry().values():
        table.add_row(item.name, item.title, item.licence, item.homepage, "yes" if item.present else "sample only")
    Console().print(table)


@corpora.command("fetch")
def fetch_corpora(
    names: Annotated[list[str], typer.Argument(help="Names, as `anima corpora list` gives them.")],
    force: Annotated[bool, typer.Option(help="Fetch again what is there and whole.")] = False,
) -> None:
    """Fetch corpora into the user's cache folder (or ANIMA_CORPORA); an interrupted fetch goes on where it stopped."""
    from anima.corpora import fetch, registry

    for name in names:
        require_choice(name, "name", tuple(registry()))
    for name in names:
        typer.echo(fetch(name, force=force).summary())


@corpora.command("verify")
def verify_corpora(
    names: Annotated[list[str] | None, typer.Argument(help="Names; without any, all corpora that are here.")] = None,
) -> None:
    """Compare the files of corpora with the registered hashes; exit code 1 if one is damaged, or named and absent."""
    from anima.corpora import registry, verify

    found = [verify(name) for name in names or [name for name, item in registry().items() if item.present]]
    for item in found:
        typer.echo(item.summary())
    if not found:
        typer.echo("no external corpus is on this machine; `anima corpora fetch NAME` gets one")
    if any(item.state != "verified" for item in found):
        raise typer.Exit(1)


@app.command()
def health(
    embedder: Embedder = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Also check the published results against code, data and a rerun.")
    ] = False,
    rerun: Annotated[
        Path | None, typer.Option(help="With --strict: results of a rerun; default: what `anima book` left.")
    ] = None,
) -> None:
    """Say whether embedder, caches, data and versions are in order; exit code 1 if something is not."""
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Column, Table

    from anima.health import check_health, check_results
    from anima.publish import project_root

    if rerun is not None and not strict:
        raise InputError("--rerun is for --strict: give both")
    if rerun is not None and not rerun.is_dir():
        raise InputError(
            f"--rerun: {rerun} is not a folder; give the folder that holds the results, e.g. build/runs/results"
        )
    rows = check_health(embedder)
    if strict:
        rows += check_results(project_root(), rerun)
    table = Table("", "what", Column("state", overflow="fold"), box=None)
    for row in rows:
        table.add_row(
            {"ok": "[green]ok[/]", "warning": "[yellow]![/]", "failed": "[red]x[/]"}[row.state],
            escape(row.name),
            escape(row.detail),
        )
    Console().print(table)
    if any(row.state == "failed" for row in rows):
        raise typer.Exit(1)
