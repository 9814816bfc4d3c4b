"""A hook for mkdocs: ``api.md``, made of signatures and docstrings whenever the site is built.

The page is not checked in. ``python tests/support/api_reference.py`` writes it to ``build/api.md``.
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
import itertools
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import lance_engine.dataset
import lance_engine.errors
import lance_engine.inspection.inspector
import lance_engine.metrics
import lance_engine.operations.branches
import lance_engine.operations.merge
import lance_engine.operations.tags
import lance_engine.progress
import lance_engine.scan.scanner

import lance_sql
import lance_sql.datafusion
import lance_sql.duckdb
import lance_sql.errors
import lance_sql.session.explanation
import lance_sql.spark

PAGE = Path(__file__).parents[2] / "build" / "api.md"

#: The public classes, with the base classes whose members are theirs.
CLASSES: tuple[tuple[type, ...], ...] = (
    (lance_sql.Dataset, lance_engine.dataset.DatasetVersion),
    (lance_engine.scan.scanner.Scanner,),
    (lance_engine.operations.merge.MergeBuilder,),
    (lance_engine.inspection.inspector.Inspector,),
    (lance_engine.operations.tags.Tags,),
    (lance_engine.operations.branches.Branches,),
    (lance_sql.Connection,),
    (lance_sql.QueryResult,),
    (lance_sql.session.explanation.Explanation,),
    (lance_engine.metrics.ScanMetrics,),
    (lance_engine.progress.ProgressEvent,),
)
MODULES = ("dbapi", "duckdb", "datafusion", "spark")

#: A longer signature has one line for each parameter.
_WIDTH = 88

_HEAD = """# Programming interface

Every public name with its signature and docstring; the [guide](guide.md) is the place to learn from.
Names have addresses: `api.html#open`, `api.html#Dataset.scan`, `api.html#spark.write`, `api.html#SqlError`.
"""


#: What the parameters of these names mean wherever a docstring does not say something else.
COMMON = {
    "allow_external": (
        'Which locations outside of the dataset may be read: "none", "same-store" (the default), "all", '
        "or a list of locations; see `open`. Another location is an `ExternalAccessError`."
    ),
    "column": (
        "The name of a column, or `a.b` for the field `b` of the struct `a`. `ColumnNotFoundError` if it "
        "does not exist; it names the most similar one."
    ),
    "columns": (
        "A list of names, in the order of the result; `a.b` is a field of a struct, and `_rowid` and "
        "`_rowaddr` are columns too. None stands for all columns. `ColumnNotFoundError` if one does not "
        "exist."
    ),
    "filter": (
        "SQL text, such as `\"price < 2 AND name LIKE 'a%'\"`, or a pyarrow expression over the columns; "
        "None for all rows. A row passes if it is true, not null. `InvalidFilterError` if it cannot be "
        "understood; see [filters](filters.md)."
    ),
    "location": ("`branch` (a name) and `storage_options` of the dataset."),
    "options": (
        "Options by name. An unknown one is an error that names the nearest, or lists what is known."
    ),
    "path": ("The location of a dataset: a local path, or a URL such as `s3://bucket/sales.lance`."),
    "progress": (
        "True prints a progress bar; a function is called with a `ProgressEvent` and cancels the "
        "operation by raising an exception; None reports nothing."
    ),
    "spark": (
        "A Spark session. What runs tasks needs a classic one: `UnsupportedFeatureError` on Spark Connect."
    ),
    "storage_options": (
        "Settings of the object store by name, such as `aws_region`; see [object "
        "stores](object-stores.md). Values are text or numbers, and secrets among them are never shown."
    ),
    "version": ("The number of a version, from 1. `VersionNotFoundError` if it does not exist (any more)."),
    "where": ("A condition, as `filter` of `Dataset.scan`."),
}


def parameters(member: Any) -> list[str]:
    """The names of the parameters of a function, or of the constructor of a class."""
    function = member.__init__ if inspect.isclass(member) else member
    return [name for name in inspect.signature(function).parameters if name not in ("self", "cls")]


def explained(member: Any) -> set[str]:
    """The parameters that the docstring of a member explains."""
    text = inspect.getdoc(member) or ""
    return {name for name in parameters(member) if re.search(rf"`{name}\b|\b{name}=", text)}


def on_config(config: Any, **_: Any) -> Any:
    """The foot of every page names the version that the site describes; links to edit need a repository."""
    if not config.repo_url:
        config.edit_uri = None
    config.copyright = f"lance-sql {lance_sql.__version__}"
    return config


def on_files(files: Any, *, config: Any, **_: Any) -> Any:
    """Called by mkdocs with the pages in ``docs``."""
    from mkdocs.structure.files import File

    files.append(File.generated(config, "api.md", content=page()))
    return files


def page() -> str:
    """The whole page."""
    parts = [_HEAD]
    rows = [f"| `{name}` | {text} |" for name, text in COMMON.items()]
    parts += [
        "## Parameters\n",
        "Unless an entry says something else:\n",
        "| parameter | |",
        "|---|---|",
        *rows,
        "",
    ]
    functions = [(name, getattr(lance_sql, name)) for name in lance_sql.__all__]
    parts += _section("Functions", [pair for pair in functions if inspect.isfunction(pair[1])])
    for kinds in CLASSES:
        parts += _class(kinds[0].__name__, *kinds)
    for name in MODULES:
        module = getattr(lance_sql, name)
        functions = [(f"{name}.{public}", getattr(module, public)) for public in _public(module)]
        parts += _section(f"lance_sql.{name}", functions, _text(module))
    parts += ["## Errors\n", *_errors()]
    return "\n".join(parts)


def _public(module: ModuleType) -> list[str]:
    """The functions and classes that a module offers."""
    return [name for name in module.__all__ if callable(getattr(module, name))]


def _section(title: str, members: list[tuple[str, Any]], text: str = "") -> list[str]:
    found = [f"## {title}\n"]
    if text:
        found.append(f"{text}\n")
    for name, member in members:
        found += _entry(name, name, member)
    return found


def _class(name: str, kind: type, *bases: type) -> list[str]:
    """A class with its attributes, and its public methods and properties, and those of `bases`."""
    found = [f"## {name} {{ #{name} }}\n", f"{_text(kind)}\n"]
    attributes = fields(kind)
    if attributes:
        rows = (f"| `{field}` | {text} |" for field, text in attributes.items())
        found.append("\n".join(["| attribute | |", "|---|---|", *rows, ""]))
    for method, member in _members(kind, *bases):
        found += _entry(method, f"{name}.{method}", member)
    return found


def fields(kind: type) -> dict[str, str]:
    """The public fields of a data class, with what the comment above or the text below them says."""
    if not dataclasses.is_dataclass(kind):
        return {}
    source = textwrap.dedent(inspect.getsource(kind))
    lines = source.splitlines()
    (definition,) = (node for node in ast.parse(source).body if isinstance(node, ast.ClassDef))
    texts = {}
    for node, following in itertools.pairwise([*definition.body, ast.Pass()]):
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            above = lines[node.lineno - 2].strip()
            text = above.removeprefix("#: ") if above.startswith("#: ") else ""
            if isinstance(following, ast.Expr) and isinstance(following.value, ast.Constant):
                text = inspect.cleandoc(str(following.value.value))
            texts[node.target.id] = " ".join(text.split())
    return {name: text for name, text in texts.items() if not name.startswith("_")}


def _entry(title: str, address: str, member: Any) -> list[str]:
    """A short heading with an address, the signature below it, and the docstring."""
    found = [f"### {title} {{ #{address} }}\n"]
    if not isinstance(member, property):
        found.append(f"```python\n{title.rpartition('.')[2]}{_signature(member)}\n```\n")
    found.append(f"{_text(member)}\n")
    if not isinstance(member, property):
        known = explained(member)
        common = [name for name in parameters(member) if name in COMMON and name not in known]
        if common:
            names = ", ".join(f"`{name}`" for name in common)
            found.append(f"{names}: see [parameters](#parameters).\n")
    return found


def members() -> Iterator[tuple[str, Any]]:
    """Every function, method and class of the page by its address."""
    for name in lance_sql.__all__:
        if inspect.isfunction(getattr(lance_sql, name)):
            yield name, getattr(lance_sql, name)
    for kinds in CLASSES:
        for name, member in _members(*kinds):
            if not isinstance(member, property):
                yield f"{kinds[0].__name__}.{name}", member
    for module in MODULES:
        for name in _public(getattr(lance_sql, module)):
            yield f"{module}.{name}", getattr(getattr(lance_sql, module), name)


def _members(*kinds: type) -> Iterator[tuple[str, Any]]:
    seen = set(getattr(kinds[0], "_ours", ()))
    for kind in kinds:
        for name, member in vars(kind).items():
            function = member.__func__ if isinstance(member, classmethod | staticmethod) else member
            if (
                name.startswith("_")
                or name in seen
                or not (callable(function) or isinstance(function, property))
            ):
                continue
            seen.add(name)
            if function.__doc__:
                yield name, function


def _signature(member: Any) -> str:
    """The signature without `self`, on one line or with a line for each parameter."""
    if inspect.isclass(member):
        member = member.__init__
    signature = inspect.signature(member)
    parameters = [
        parameter.replace(annotation=_Annotation(parameter.annotation))
        if parameter.annotation is not parameter.empty
        else parameter
        for name, parameter in signature.parameters.items()
        if name not in ("self", "cls")
    ]
    returned = signature.return_annotation
    if returned is not signature.empty:
        returned = _Annotation(returned)
    signature = signature.replace(parameters=parameters, return_annotation=returned)
    text = str(signature)
    return text if len(text) <= _WIDTH else _wrapped(parameters, returned)


def _wrapped(parameters: list[inspect.Parameter], returned: Any) -> str:
    """A signature with a line for each parameter."""
    lines = [str(parameter) for parameter in parameters]
    kinds = [parameter.kind for parameter in parameters]
    if inspect.Parameter.KEYWORD_ONLY in kinds and inspect.Parameter.VAR_POSITIONAL not in kinds:
        lines.insert(kinds.index(inspect.Parameter.KEYWORD_ONLY), "*")
    end = "" if returned is inspect.Signature.empty else f" -> {returned!r}"
    return "\n".join(["(", *(f"    {line}," for line in lines), f"){end}"])


class _Annotation:
    """An annotation as it is written in the source, without the quotes of a text."""

    def __init__(self, written: Any) -> None:
        self._written = str(written)

    def __repr__(self) -> str:
        return self._written


def _text(member: Any) -> str:
    """The docstring as Markdown: double backquotes become single ones."""
    return (inspect.getdoc(member) or "").replace("``", "`").strip()


def _errors() -> Iterator[str]:
    kinds = [
        kind
        for module in (lance_engine.errors, lance_sql.errors)
        for kind in vars(module).values()
        if inspect.isclass(kind)
        and issubclass(kind, lance_engine.errors.LanceError)
        and kind.__module__ == module.__name__
    ]
    for kind in kinds:
        bases = ", ".join(f"`{base.__name__}`" for base in kind.__bases__)
        yield f"### {kind.__name__} {{ #{kind.__name__} }}\n"
        yield f"A {bases}. {_text(kind)}\n"


if __name__ == "__main__":
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(page())
    print(PAGE)
