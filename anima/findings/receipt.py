"""Receipts: content hashes by which anyone can tell what a result was computed from.

No clock and no commit is part of one: the same inputs, code and parameters give the same receipt anywhere, and a changed
word in a docstring changes nothing.
"""

from __future__ import annotations

import ast
import hashlib
import io
import json
import tokenize
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from anima.errors import InputError
from anima.settings import data_path

if TYPE_CHECKING:
    from collections.abc import Mapping

_PACKAGE: Final = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Receipt:
    """Hashes (the first 16 digits of SHA-256) of everything a result depends on, and of the result.

    ``inputs`` by corpus or data file; ``sources`` of the modules of this package that computed it; ``parameters`` and
    ``outputs`` of their JSON.
    """

    inputs: Mapping[str, str]
    sources: str
    parameters: str
    outputs: str

    def differences(self, other: Receipt) -> list[str]:
        """Return what differs between two receipts, in words."""
        names = sorted(set(self.inputs) | set(other.inputs))
        found = [f"input {name}" for name in names if self.inputs.get(name) != other.inputs.get(name)]
        words = {"sources": "code", "parameters": "parameters", "outputs": "results"}
        return found + [word for key, word in words.items() if getattr(self, key) != getattr(other, key)]


def make_receipt(
    module: str, *, inputs: Mapping[str, str], data: tuple[str, ...], parameters: Mapping[str, Any], outputs: Any
) -> Receipt:
    """Return the receipt of a result computed by ``module`` from corpora (``inputs``: their hashes) and data files."""
    files = {name: digest(data_path(name).read_bytes()) for name in data}
    return Receipt(dict(inputs) | files, sources_hash(module), digest(parameters), digest(outputs))


def digest(content: Any) -> str:
    """Return the first 16 hexadecimal digits of the SHA-256 of bytes, or of a value's canonical JSON."""
    if not isinstance(content, bytes):
        content = json.dumps(content, sort_keys=True, ensure_ascii=False, default=str).encode()
    return hashlib.sha256(content).hexdigest()[:16]


def sources_hash(module: str) -> str:
    """Return the hash of a module of this package and of every module of the package that it imports, in turn."""
    return digest(sources(module))


@cache
def sources(module: str) -> dict[str, str]:
    """Return the hash of each module that :func:`sources_hash` is taken of, by its name.

    Comments, docstrings and blank lines are left out: prose changes no number.
    """
    found: dict[str, str] = {}
    queue = [module]
    while queue:
        name = queue.pop()
        path = _file(name)
        if name in found or path is None:
            continue
        tree = ast.parse(text := path.read_text(encoding="utf-8"))
        found[name] = digest(_bare(text, tree).encode())
        parents = [name.rsplit(".", depth)[0] for depth in range(1, name.count("."))]
        queue += [*parents, *_imports(tree)]
    if module not in found:
        raise InputError(f"module {module!r} is not part of this package")
    return found


def _file(name: str) -> Path | None:
    parts = name.split(".")
    if parts[0] != "anima" or len(parts) == 1:
        return None
    base = _PACKAGE.joinpath(*parts[1:])
    return next((path for path in (base.with_suffix(".py"), base / "__init__.py") if path.is_file()), None)


def _imports(tree: ast.AST) -> list[str]:
    """Return modules of the package imported anywhere in ``tree``, but for those that only the type checker sees."""
    names: list[str] = []
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            continue
        if isinstance(node, ast.Import):
            names += [item.name for item in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            # What follows "import" may be a module too; one that is none has no file and is skipped.
            names += [node.module, *(f"{node.module}.{item.name}" for item in node.names)]
        names += _imports(node)
    return [name for name in names if name.startswith("anima.")]


def _bare(text: str, tree: ast.AST) -> str:
    """Return the lines of a source without comments, docstrings and blank lines.

    Positions are the same on every version of Python, which the syntax tree's own text is not.
    """
    lines = text.splitlines()
    for node in ast.walk(tree):
        if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if ast.get_docstring(node, clean=False) is not None:
            for number in range(node.body[0].lineno - 1, node.body[0].end_lineno or 0):
                lines[number] = ""
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        row, column = token.start
        if token.type == tokenize.COMMENT:
            lines[row - 1] = lines[row - 1][:column]
    return "\n".join(line.rstrip() for line in lines if line.strip())
