"""Kinds are listed once, in a table; texts for people that list them are equal to it."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import click
import pyarrow as pa
import pytest
from lance_engine.dataset import DatasetVersion
from lance_engine.expr.render import type_name
from lance_engine.expr.sql_names import SQL_NAMES, SQL_TYPES
from lance_engine.index.inverted.analysis import Analysis
from lance_engine.index.registry import KINDS as FILTER_KINDS
from lance_engine.operations.indices import INDEX_KINDS
from test_layers import ROOTS

from lance_sql.cli.indices import create
from lance_sql.shell.completion import KEYWORDS
from lance_sql.statements.answers import _HANDLERS
from lance_sql.text.kinds import KINDS as STATEMENTS
from lance_sql.types.kinds import KINDS as STORED
from lance_sql.types.table import TYPES

DOCS = Path(__file__).parents[2] / "docs"


def words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.lower()))


def listed(text: str) -> set[str]:
    """The kinds of indices that a text names."""
    return words(text) & {name.lower() for name in INDEX_KINDS}


def cli_help() -> str:
    (option,) = (parameter for parameter in create.params if parameter.name == "kind")
    assert isinstance(option, click.Option)
    return str(option.help)


@pytest.mark.parametrize("text", [str(DatasetVersion.create_index.__doc__), cli_help()], ids=["api", "cli"])
def test_texts_list_all_kinds_of_indices(text: str) -> None:
    assert listed(text) == {name.lower() for name in INDEX_KINDS}


def test_the_page_lists_all_kinds_for_filters() -> None:
    section = (DOCS / "indices.md").read_text(encoding="utf-8").split("## Kinds")[1].split("\n\n")[1]
    assert re.findall(r"^\| `(\w+)`", section, re.MULTILINE) == list(FILTER_KINDS)


def test_the_docstring_names_all_options_of_indices() -> None:
    named = words(str(DatasetVersion.create_index.__doc__))
    options = {name for kind in FILTER_KINDS.values() for name in kind.options}
    analysis = {field.name for field in dataclasses.fields(Analysis)} - {"lance_tokenizer"}
    assert options | analysis | {"with_position"} <= named


def test_no_other_text_lists_kinds_of_indices() -> None:
    """Two kinds may be compared; four are a list."""
    for root in ROOTS.values():
        for path in root.rglob("*.py"):
            if str(path.relative_to(root)) in ("dataset.py", "cli/indices.py", "index/registry.py"):
                continue
            for text in re.findall(r'"""(.+?)"""', path.read_text(encoding="utf-8"), re.DOTALL):
                assert len(listed(text) - {"inverted"}) < 4, path


def test_what_we_run_and_what_completion_offers_are_statements() -> None:
    assert set(_HANDLERS) <= set(STATEMENTS)
    assert {word for word in STATEMENTS if word.isalpha()} <= set(KEYWORDS)


def test_stored_types_are_those_of_filters_and_those_that_only_duckdb_has() -> None:
    plain = {name: kind.arrow for name, kind in STORED.items() if not kind.extension}
    assert SQL_TYPES.items() <= plain.items()
    assert set(plain) - set(SQL_TYPES) == {"TIME_NS", "TIMESTAMPTZ_NS", '"NULL"'}


def test_filters_write_types_as_the_table_calls_them() -> None:
    for kind, name in SQL_NAMES.items():
        assert type_name(kind) == {"TIMESTAMP WITH TIME ZONE": "TIMESTAMPTZ"}.get(name, name)
    named = {row.arrow: row.duckdb for row in TYPES}
    assert {kind: named[kind] for kind in SQL_NAMES if kind in named} == dict(SQL_NAMES)
    assert type_name(pa.list_(pa.int8())) == "list<item: int8>"
