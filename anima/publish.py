"""Rerun the notebooks and build the book: the two things ``make book`` does after setting up.

Notebooks are executed by papermill into ``build/book`` and the book is built from there, so that the committed files
stay as they are. The built pages need no network: MathJax is copied out of an installed package, charts are SVG.
"""

from __future__ import annotations

import ast
import contextlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys
from concurrent.futures import FIRST_EXCEPTION, ProcessPoolExecutor, wait
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anima.errors import AnimaError, DataError, InputError, MissingDependencyError
from anima.findings import published, read_finding
from anima.locks import locked

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from anima.findings import Finding


def project_root(start: Path | None = None) -> Path:
    """Return the folder that holds ``notebooks/`` and ``book/``: the working folder, one above it, or the checkout of
    the package.
    """
    here = (start or Path.cwd()).resolve()
    for folder in (here, *here.parents, Path(__file__).resolve().parent.parent):
        if (folder / "notebooks").is_dir() and (folder / "book" / "_toc.yml").is_file():
            return folder
    raise DataError(
        f"{here}: no checkout with notebooks/ and book/ here or above; notebooks and book are not part of an installed package"
    )


def finding_name(path: str | Path) -> str:
    """Return the name of the finding that a notebook computes: its own name without its number."""
    return Path(path).stem.split("_", 1)[-1]


def notebook_path(name: str, root: Path | None = None) -> Path:
    """Return the notebook called ``name``, with or without its number: ``embedding_pipeline`` finds
    ``01_embedding_pipeline.ipynb``.
    """
    folder = (root or project_root()) / "notebooks"
    found = {path.stem: path for path in sorted(folder.glob("*.ipynb"))}
    short = {finding_name(path): path for path in found.values()}
    if (path := found.get(name) or short.get(name)) is None:
        raise InputError(f"notebook {name!r} not found; there are {', '.join(short) or 'none'}")
    return path


def notebook_parameters(path: Path) -> dict[str, Any]:
    """Return the names and defaults in the notebook's ``parameters`` cell."""
    notebook = json.loads(path.read_text(encoding="utf-8"))
    for cell in notebook["cells"]:
        if "parameters" in cell.get("metadata", {}).get("tags", []):
            found = {}
            for node in ast.parse("".join(cell["source"])).body:
                if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
                    target = node.targets[0] if isinstance(node, ast.Assign) else node.target
                    if isinstance(target, ast.Name):
                        found[target.id] = ast.literal_eval(node.value)
            return found
    return {}


def read_parameters(pairs: list[str], known: Mapping[str, Any]) -> dict[str, Any]:
    """Turn ``name=value`` pairs into parameters of the types of their defaults; a wrong name or type is refused by name.

    The name of a file that is there is made absolute.
    """
    chosen: dict[str, Any] = {}
    for pair in pairs:
        name, equals, raw = pair.partition("=")
        if not equals:
            raise InputError(f"parameter {pair!r} must have the form name=value")
        if name not in known:
            raise InputError(f"parameter {name!r} is unknown; the notebook takes {', '.join(known) or 'none'}")
        chosen[name] = _typed(name, raw, known[name])
    return chosen


def _typed(name: str, raw: str, default: Any) -> Any:
    if isinstance(default, str):
        # A notebook runs in the folder of its outputs; a file is meant as seen from here.
        return str(Path(raw).resolve()) if Path(raw).is_file() else raw
    try:
        value = ast.literal_eval({"true": "True", "false": "False", "none": "None"}.get(raw.lower(), raw))
    except (ValueError, SyntaxError):
        value = raw
    if default is None or (isinstance(default, float) and isinstance(value, int) and not isinstance(value, bool)):
        return value
    if type(value) is not type(default):
        raise InputError(
            f"parameter {name!r} must be {type(default).__name__} like its default {default!r}, got {raw!r}"
        )
    return value


@contextlib.contextmanager
def reserved(out: Path, name: str = "out") -> Iterator[None]:
    """Make the folder of ``out`` and hold the lock of ``out``: two runs of a notebook into one folder go one by one."""
    with contextlib.ExitStack() as stack:
        try:
            out.parent.mkdir(parents=True, exist_ok=True)
            stack.enter_context(locked(out))
        except OSError as error:
            raise InputError(
                f"{name}: {out.parent} cannot be written to ({error.strerror}): give a folder that can"
            ) from None
        yield


def run_notebook(path: Path, out: Path, parameters: Mapping[str, Any] | None = None) -> Path:
    """Execute a notebook with papermill; the result, outputs included, is written to ``out``.

    Raises
    ------
    InputError
        The folder of ``out`` cannot be written to.
    AnimaError
        A cell failed; the message has the cell's error, and the notebook as far as it came is kept beside ``out`` under a name
        that says so. What an earlier run left at ``out`` stays.
    """
    try:
        import papermill
        from papermill.exceptions import PapermillExecutionError
    except ImportError as error:
        raise MissingDependencyError("papermill is not installed: pip install '.[book]' in the checkout") from error
    with reserved(out):
        failed = out.with_name(f"{out.stem}-failed.ipynb")
        try:
            papermill.execute_notebook(
                str(path),
                str(failed),
                dict(parameters or {}),
                kernel_name="python3",
                progress_bar=False,
                # Else each kernel warns that it speaks plain TCP, and one that is interrupted tells of its closed sockets.
                extra_arguments=["--IPKernelApp.log_level=CRITICAL"],
                cwd=str(out.parent),
            )
        except PapermillExecutionError as error:
            raise AnimaError(
                f"{path.name}: cell {error.cell_index} failed with {error.ename}: {error.evalue}; see {failed}"
            ) from error
        failed.replace(out)
    return out


def run_notebooks(paths: Sequence[Path], folder: Path, *, workers: int | None = None) -> list[Path]:
    """Execute notebooks side by side, each in a process of its own; once one fails, those that wait are let be.

    Parameters
    ----------
    paths, folder
        The notebooks, and where the executed ones go; they share ``folder`` as their working folder.
    workers
        How many run at once; by default the number of cores, at most four: a kernel takes about 1 GB.

    Raises
    ------
    AnimaError
        As :func:`run_notebook`.
    """
    workers = workers or min(os.cpu_count() or 1, 4)
    # A fresh interpreter for each: forking a process that already has threads may leave the copy waiting for ever.
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        running = [pool.submit(_run_announced, path, folder / path.name) for path in paths]
        done, waiting = wait(running, return_when=FIRST_EXCEPTION)
        for job in waiting:
            job.cancel()
        for job in done:
            job.result()  # raises what stopped the others
        return [job.result() for job in running]


def _run_announced(path: Path, out: Path) -> Path:
    print(f"running {path.name}", flush=True)  # noqa: T201
    return run_notebook(path, out)


def build_book(root: Path | None = None, *, execute: bool = True) -> Path:
    """Run every notebook, build the book with warnings as errors, and return its first page.

    Parameters
    ----------
    root
        Checkout; found from the working folder by default.
    execute
        False builds from the committed outputs, for work on the prose.
    """
    root = root or project_root()
    if importlib.util.find_spec("jupyter_book") is None:
        raise MissingDependencyError("jupyter-book is not installed: pip install '.[book]' in the checkout")
    source = root / "build" / "book"
    shutil.rmtree(source, ignore_errors=True)
    shutil.copytree(root / "book", source, ignore=shutil.ignore_patterns("_build"))
    target = source / "notebooks"
    target.mkdir()
    notebooks = sorted((root / "notebooks").glob("*.ipynb"))
    pages = run_notebooks(notebooks, target) if execute else [Path(shutil.copy(path, target)) for path in notebooks]
    for page in pages:
        _for_the_page(page)
    _vendor_mathjax(source / "vendor")
    from anima.pages import write_generated_pages

    write_generated_pages(source)
    out = root / "book" / "_build"
    shutil.rmtree(out, ignore_errors=True)
    command = [
        sys.executable,
        "-c",
        "from jupyter_book.cli.main import main; main()",
        "build",
        str(source),
        "--path-output",
        str(root / "book"),
        "-W",
        "-n",
        "--keep-going",
    ]
    done = subprocess.run(command, check=False, env=os.environ | {"PYDEVD_DISABLE_FILE_VALIDATION": "1"})  # noqa: S603
    index = out / "html" / "index.html"
    if done.returncode or not index.is_file():
        raise AnimaError("the book was not built: jupyter-book reported the warnings or errors above")
    return index


def rerun_result(path: Path) -> Finding | None:
    """Return the finding that an executed notebook wrote beside itself; None where it wrote none."""
    written = path.parent / "results" / f"{finding_name(path)}.json"
    return read_finding(written) if written.is_file() else None


def _for_the_page(path: Path) -> None:
    """Make an executed notebook ready for the book.

    The published result of a finding is put under the title, with what the rerun differs in. Widgets keep their static form
    alone: their scripts would be asked for, and nothing answers on a page.
    """
    from anima.pages import published_box

    notebook = json.loads(path.read_text(encoding="utf-8"))
    notebook["metadata"].pop("widgets", None)
    for cell in notebook["cells"]:
        for output in cell.get("outputs", []):
            output.get("data", {}).pop("application/vnd.jupyter.widget-view+json", None)
    rerun = rerun_result(path)
    if rerun is not None and rerun.sample:
        for cell in notebook["cells"]:  # what they say was read off the full corpora
            told = cell["metadata"].get("mystnb", {})
            for part, key in (("figure", "caption"), ("image", "alt")):
                if key in told.get(part, {}):
                    told[part][key] = f"SAMPLE, invented data. The published figure: {told[part][key]}"
    if (found := published(finding_name(path))) is not None:
        box = {
            "id": "published-result",
            "cell_type": "markdown",
            "metadata": {},
            "source": published_box(found, rerun),
        }
        notebook["cells"].insert(1, box)
    path.write_text(json.dumps(notebook, ensure_ascii=False), encoding="utf-8")


def _vendor_mathjax(target: Path) -> None:
    """Copy MathJax out of an installed package, so that formulas are drawn without a network."""
    spec = importlib.util.find_spec("mathjax")
    source = (
        Path(spec.submodule_search_locations[0]) / "static" / "mathjax" / "es5"
        if spec and spec.submodule_search_locations
        else None
    )
    if source is None or not source.is_dir():
        raise MissingDependencyError(
            "MathJax not found: pip install '.[book]' in the checkout brings it (django-static-mathjax)"
        )
    shutil.copytree(
        source,
        target / "mathjax",
        ignore=shutil.ignore_patterns("*mml-svg*", "*-full.js", "sre", "*svg*"),
        dirs_exist_ok=True,
    )
