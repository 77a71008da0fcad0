"""The command line: thin over the API."""

from __future__ import annotations

import contextlib
import errno
import io
import json
import os
import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TextIO, cast, get_args

import typer

import anima
from anima.checks import require_choice
from anima.cli_files import decode, read_reply, read_row, read_text, show, write_json, write_text
from anima.errors import AnimaError, DataWarning, InputError

if TYPE_CHECKING:
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
_JUDGES = "ollama[:MODEL[@URL]], openai:MODEL@URL, or rules (a fall-back without a language model)"
AsJson = Annotated[bool, typer.Option("--json", help="Everything as JSON.")]
Out = Annotated[Path | None, typer.Option(help="Write to this file instead of standard output.")]
Lang = Annotated[str, typer.Option(help="Language of the judge's notes: en or es.")]


def main() -> None:
    """Run the command line; an expected error is one line on stderr and exit code 2."""
    warnings.showwarning = _show_warning
    for stream in (sys.stdout, sys.stderr):  # a terminal that is not UTF-8 shows "?" for what it cannot draw
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    try:
        try:
            app()
        finally:
            print(end="", flush=True)  # noqa: T201  # what cannot be written is said here, not when the interpreter ends
    except AnimaError as error:
        typer.echo(f"anima: {error}", err=True)
        raise SystemExit(2) from None
    except (BrokenPipeError, SystemExit) as end:  # typer and rich make of a closed pipe an exit with code 1
        if not isinstance(end, BrokenPipeError) and not isinstance(end.__context__, BrokenPipeError):
            raise
        _discard(sys.stdout)
        raise SystemExit(0) from None  # the reader, e.g. `head`, has seen enough
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
    out: Out = None,
    field: Annotated[str, typer.Option(help="Field of the JSONL lines that holds the reply.")] = "response",
    question: Annotated[str | None, typer.Option(help="What was asked.")] = None,
    as_json: AsJson = False,
    keywords: Annotated[bool, typer.Option(help="Compute each sentence's keyword (slow).")] = False,
    judge: Annotated[str | None, typer.Option(help=f"Give a verdict as well: {_JUDGES}.")] = None,
    lang: Lang = "en",
    embedder: Embedder = None,
    rules: Annotated[str, typer.Option(help="anima or reference.")] = "anima",
    classifier: Annotated[
        str | None, typer.Option(help="centroid, centroids, linear or hybrid; default: the rules' own.")
    ] = None,
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
    result = anima.analyze(read_reply(text, file), question, keywords=mode, **options)
    if as_json or (out is not None and out.suffix == ".json"):
        write_json(result.to_dict(), out)
        return
    from anima.authenticity.render import analysis_rich

    show(out, analysis_rich(result), *([] if result.verdict is None else _verdict_parts(result.verdict)))


def _verdict_parts(verdict: Any) -> list[Any]:
    """Return what a judge said as it may be printed: secrets and control characters taken out."""
    from rich.rule import Rule
    from rich.text import Text

    from anima.authenticity.render.pieces import visible

    safe = verdict.redacted()
    lines = [safe.summary()]
    for name in safe.shown:
        value = getattr(safe, name)
        items = value if isinstance(value, tuple) else (value,) if value else ()
        lines += [f"{name.replace('_', ' ')}: {item}" for item in items]
    return ["", Rule("Verdict", align="left", style="dim"), Text(visible("\n".join(lines)))]


def _analyze_lines(path: Path, out: Path | None, field: str, mode: Any, options: dict[str, Any]) -> None:
    name, text = read_text(path)
    rows = [read_row(line, f"{name}:{i}", field) for i, line in enumerate(text.split("\n"), 1) if line.strip()]
    # The bar goes to stderr, and only to a person: standard output stays clean JSONL.
    replies, questions = [row.pop(field) for row in rows], [row.pop("question", None) for row in rows]
    analyses = anima.analyze_many(replies, questions, keywords=mode, progress=sys.stderr.isatty(), **options)
    lines, replaced = [], set[str]()
    for row, analysis in zip(rows, analyses, strict=True):
        result = analysis.to_dict()
        if not row.keys() >= result.keys() - {"response", "question", "verdict"}:  # else an analysis, made anew
            replaced |= row.keys() & result.keys()
        lines.append(json.dumps(row | result, ensure_ascii=False) + "\n")
    if replaced:
        names = ", ".join(map(repr, sorted(replaced)))
        said = f"{name}: the analysis has fields of its own called {names}: the file's are left out"
        warnings.warn(said, DataWarning, stacklevel=2)
    write_text("".join(lines), out)


@app.command()
def refine(
    question: Annotated[str, typer.Argument(help="The question to rewrite.")],
    judge: Annotated[str, typer.Option(help=f"Who rewrites: {_JUDGES}.")] = "ollama",
    lang: Lang = "en",
    as_json: AsJson = False,
) -> None:
    """Rewrite a question so that it no longer invites a managed reply; who did it, and why, goes to stderr."""
    found = anima.refine(decode(os.fsencode(question), "QUESTION"), judge=judge, lang=cast("NotesLang", lang))
    if as_json:
        write_json(found.to_dict())
        return
    from anima.judge.sanitize import sanitize

    typer.echo(f"anima: {sanitize(found.summary())}", err=True)
    write_text(found.refined + "\n")


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
    from anima.authenticity.calibrate import Target
    from anima.authenticity.calibrate import calibrate as run
    from anima.authenticity.profiles import profile_name
    from anima.settings import user_cache_dir

    require_choice(target, "target", (*get_args(Target), "both"))
    targets: tuple[Target, ...] = get_args(Target) if target == "both" else (cast("Target", target),)
    first, *others = targets
    instrument = anima.instrument(embedder=embedder)
    found = run(instrument, golden, target=first)
    typer.echo(found.summary())
    for name in others:  # which keep what the first sweep found
        found = run(instrument, golden, target=name).with_profile(found.profile)
        typer.echo(found.summary())
    profile = found.profile
    if write:
        path = user_cache_dir() / "profiles" / profile_name(instrument.embedder.id)
        write_text(profile.to_toml(), path)
        typer.echo(f"written to {path}")
    else:
        typer.echo(profile.to_toml())


@app.command()
def run(
    name: Annotated[str, typer.Argument(help="Notebook, with or without its number, e.g. embedding_pipeline.")],
    parameter: Annotated[list[str] | None, typer.Option("--parameter", "-p", help="name=value, repeatable.")] = None,
    out: Annotated[
        Path,
        typer.Option(
            help="Folder for the executed notebook; runs of one notebook into one folder wait for each other."
        ),
    ] = Path("build/runs"),
) -> None:
    """Rerun a notebook with papermill, with parameters of your own, and say what differs from the published run."""
    from anima.publish import finding_name, notebook_parameters, notebook_path, read_parameters, reserved

    path = notebook_path(name)
    known = notebook_parameters(path)
    chosen = read_parameters(parameter or [], known)
    short, folder = finding_name(path), out.resolve()
    if folder.exists() and not folder.is_dir():
        raise InputError(f"--out: {out} is not a folder; name one that is, or that is not there yet")
    result = folder / str((known | chosen).get("results", "results")) / f"{short}.json"
    with contextlib.ExitStack() as stack:
        stack.enter_context(reserved(folder / path.name))
        if not result.is_relative_to(folder):
            stack.enter_context(reserved(result, "results"))
        _rerun(path, folder, chosen, result)


def _rerun(path: Path, folder: Path, chosen: dict[str, Any], result: Path) -> None:
    from anima.findings import compare_findings, published, read_finding
    from anima.pages import differences_page
    from anima.publish import run_notebook

    short = result.stem
    earlier = result.with_name(f"{short}-earlier.json")
    if result.is_file():  # what an earlier run left is no result of this one, and comes back if this one fails
        result.replace(earlier)
    before = _changed(folder)
    try:
        typer.echo(f"{path.stem}: {run_notebook(path, folder / path.name, chosen)}")
    except BaseException:
        if earlier.is_file():
            earlier.replace(result)
        raise
    earlier.unlink(missing_ok=True)
    for file, when in sorted(_changed(folder).items()):
        if file.name != path.name and before.get(file) != when:
            typer.echo(f"  wrote {file}")
    if not result.is_file():
        return
    if (old := published(short)) is None:
        typer.echo(f"{short}: no full-corpus result is published, so there is nothing to compare with")
        return
    new, report = read_finding(result), folder / f"{short}-differences.md"
    write_text(differences_page(old, new), report)
    typer.echo(f"{compare_findings(old, new).summary()} Number by number: {report}")


def _changed(folder: Path) -> dict[Path, int]:
    """Return when each file was changed; those that another run takes away meanwhile are left out."""
    found = {}
    for file in folder.rglob("*"):
        with contextlib.suppress(FileNotFoundError):
            if file.is_file():
                found[file] = file.stat().st_mtime_ns
    return found


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
    out: Out = None,
) -> None:
    """Show the capability card: what the instrument can and cannot do, from the published results."""
    from anima.card import card_html, card_markdown, card_rich, current_card

    kinds = {".md": "markdown", ".html": "html", ".json": "json", ".txt": "terminal"}
    if format is None and out is not None and out.suffix not in kinds:
        raise InputError(f"--out: the suffix of {out} names no format; take {', '.join(kinds)}, or add --format")
    chosen = require_choice(format or (kinds[out.suffix] if out else "terminal"), "format", tuple(kinds.values()))
    made = current_card()
    if chosen == "terminal":
        show(out, card_rich(made), width=120)
    elif chosen == "json":
        write_json(made.to_dict(), out)
    else:
        write_text(card_markdown(made) if chosen == "markdown" else card_html(made), out)


@corpora.command("list")
def list_corpora() -> None:
    """Say what each corpus is, its licence, where it is published, and whether it is on this machine."""
    from anima.corpora import registry

    for item in registry().values():  # no table: a terminal would break the addresses
        here = "here" if item.present else "sample only"
        typer.echo(f"{item.name} ({here}): {item.title}\n  {item.licence}\n  {item.homepage}")


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
    from rich.table import Column, Table
    from rich.text import Text

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
    signs = {"ok": "[green]ok[/]", "warning": "[yellow]![/]", "failed": "[red]x[/]"}
    for row in rows:
        table.add_row(signs[row.state], Text(row.name), Text(row.detail))
    show(None, table)
    if any(row.state == "failed" for row in rows):
        raise typer.Exit(1)
