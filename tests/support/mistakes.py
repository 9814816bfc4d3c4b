"""Mistakes of users and their error messages, for the table in `docs/errors.md`.

Run it to write the tables again: ``python tests/support/mistakes.py``. Without Java, those of Spark are kept.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.dataset as pads
from click.testing import CliRunner

import lance_sql
from lance_sql.cli.app import app

PAGE = Path(__file__).parents[2] / "docs" / "errors.md"
_BEGIN, _END = "<!-- mistakes: begin -->", "<!-- mistakes: end -->"
_SPARK_BEGIN, _SPARK_END = "<!-- mistakes in Spark: begin -->", "<!-- mistakes in Spark: end -->"

PYTHON = (
    "lance_sql.open('sale.lance')",
    "lance_sql.open('sales.parquet')",
    "lance_sql.open('sales.lance', version=99)",
    "lance_sql.open('sales.lance', version='1')",
    "lance_sql.open('sales.lance', tag='prod')",
    "lance_sql.open('sales.lance', branch='dev')",
    "lance_sql.write(sales, 'sales.lance')",
    "lance_sql.write(sales, 'new.lance', mode='append')",
    "lance_sql.write(sales, 'new.lance', mode='apend')",
    "lance_sql.write(5, 'new.lance')",
    "lance_sql.write({'a': [1], 'b': [1, 2]}, 'new.lance')",
    "lance_sql.write({'a': [1, 'x']}, 'new.lance')",
    "lance_sql.write('data/*.parquet', 'new.lance')",
    "lance_sql.write(sales, 'new.lance', data_storage_version='3.0')",
    "lance_sql.write(sales, 'new.lance', max_rows_per_file=0)",
    "lance_sql.write({'id': ['a']}, 'sales.lance', mode='append')",
    "lance_sql.write(pa.table({'colour': ['red']}), 'sales.lance', mode='append')",
    "ds.scan(columns=['prise'])",
    "ds.scan(filter='prise > 1')",
    "ds.scan(filter='price >')",
    "ds.scan(filter=\"price > 'much'\").to_table()",
    "ds.scan(limit=-1)",
    "ds.take([-1])",
    "ds.take([10**6])",
    "ds[10**6]",
    "ds.delete('')",
    "ds.update({'prise': '1'})",
    "ds.update({'price': \"'much'\"})",
    "ds.drop_columns(['prise'])",
    "ds.create_index('price', 'btre')",
    "ds.create_index('name', 'ivf_pq')",
    "ds.drop_index('nothing')",
    "ds.nearest('price', [1.0, 2.0])",
    "ds.merge({'key': [1]}, 'id').when_matched_update_all().execute()",
    "ds.tags.create('first', version=99)",
    "lance_sql.connect(engine='postgres')",
    "lance_sql.open('s3://')",
    "lance_sql.set_memory_limit('lots')",
    "lance_sql.dataset('sales.lance')",
    "lance_sql.read_lance('sales.lance')",
    "lance_sql.write_dataset(sales, 'new.lance')",
    "lance_sql.read_parquet('sales.parquet')",
    "lance_sql.torch.LanceDataset('sales.lance')",
    "lance_sql.opne('sales.lance')",
    "lance_sql.write(sales, 'sales.parquet')",
    "lance_sql.write('new.lance', sales)",
    "ds.to_table(limits=10)",
    "ds.to_table(with_row_id=True)",
    "ds.merge_insert('id')",
    "ds.colums",
    "ds.iloc[0]",
    "lance_sql.sql('SELECT 1').write_json('x.json')",
)
SQL = (
    "SELECT * FROM 'sale.lance'",
    "SELECT * FROM sales_2026",
    "SELECT prise FROM 'sales.lance'",
    "SELEC * FROM 'sales.lance'",
    "SELECT name + 1 FROM 'sales.lance'",
    "SELECT * FROM 'sales.lance' AT (VERSION => 99)",
    "INSERT INTO 'sales.lance' VALUES (1)",
    "DELETE FROM 'sale.lance'",
    "UPDATE 'sales.lance' SET prise = 1",
    "COPY (SELECT * FROM 'sales.lance') TO 'copy.csv' (FORMAT lance)",
)
COMMANDS = (
    "lance-sql inspct sales.lance",
    "lance-sql head sale.lance",
    "lance-sql head sales.lance --limit many",
    "lance-sql take sales.lance 1000000",
    "lance-sql convert sales.lance out.xyz",
    "lance-sql convert 'no/*.csv' new.lance",
    "lance-sql convert sales.lance copy.parquet --to lance",
    "lance-sql cleanup sales.lance --older-than week",
    'lance-sql "SELECT * FROM sales.lance"',
)
SPARK = (
    "spark.read.format('lance').load('sale.lance')",
    "spark.read.format('lance').load()",
    "spark.read.format('lance').option('version', 99).load('sales.lance')",
    "spark.read.format('lance').option('versoin', 1).load('sales.lance')",
    "lance_sql.spark.write(frame, 'sales.lance')",
    "lance_sql.spark.write(frame, 'new.lance', mode='apend')",
    "lance_sql.spark.write(sales, 'new.lance')",
    "frame.withColumn('colour', frame.id).write.format('lance').mode('append').save('sales.lance')",
    "frame.write.format('lance').save('sales.lance')",
    "frame.write.format('lance').save()",
    "frame.write.format('lance').partitionBy('id').save('new.lance')",
    "spark.read.format('lance').load('files.parquet')",
    "spark.read.format('lance').option('version', 'one').load('sales.lance')",
    "frame.write.format('lance').save('copy.parquet')",
    "lance_sql.spark.write(frame, 'copy.parquet')",
    "frame.write.format('lance').mode('append').option('max_rows', 5).save('sales.lance')",
    "lance_sql.spark.read(spark, 'sales.lance')",
)


class Mistake(NamedTuple):
    """A mistake, the class of the error (or the exit code), and its message."""

    where: str
    text: str
    kind: str
    message: str


def mistakes() -> Iterator[Mistake]:
    """Every mistake, made in a directory with the dataset ``sales.lance``."""
    with tempfile.TemporaryDirectory() as folder, _inside(folder):
        sales = pa.table({"id": [1, 2], "price": [0.5, 1.5], "name": ["a", "b"]})
        ds = lance_sql.write(sales, "sales.lance")
        names = {"lance_sql": lance_sql, "pa": pa, "sales": sales, "ds": ds}
        shown = os.path.realpath(folder)
        for text in PYTHON:
            yield _raised("Python", text, lambda text=text: eval(text, dict(names)), folder, shown)
        for engine in ("DuckDB", "DataFusion"):
            for text in SQL:
                run = lambda text=text, engine=engine: lance_sql.sql(text, engine.lower()).arrow()  # noqa: E731
                yield _raised(engine, text, run, folder, shown)
        for text in COMMANDS:
            done = CliRunner().invoke(
                app, shlex.split(text)[1:], prog_name="lance-sql", env={"COLUMNS": "500"}
            )
            lines = done.stderr.strip().splitlines()
            # Above the message are the usage, and where to find help.
            message = _plain(lines[-1], folder, shown)
            yield Mistake("command line", text, f"exit code {done.exit_code}", message)


def mistakes_in_spark(spark: Any) -> Iterator[Mistake]:
    """Every mistake of `SPARK`. Its processes have working directories of their own: paths are absolute."""
    with tempfile.TemporaryDirectory() as folder:
        sales = pa.table({"id": [1, 2]})
        lance_sql.write(sales, f"{folder}/sales.lance")
        pads.write_dataset(sales, f"{folder}/files.parquet", format="parquet")
        names = {"lance_sql": lance_sql, "spark": spark, "frame": spark.range(2), "sales": sales}
        for text in SPARK:
            code = re.sub(r"'(\w+\.(?:lance|parquet))'", rf"'{folder}/\1'", text)
            made = _raised("Spark", text, lambda code=code: eval(code, dict(names)), folder)
            ours = _OF_SPARK.search(made.message)
            if ours is not None:  # our error is in that of Spark
                kind = f"{made.kind.rpartition('.')[2]}, of {ours['kind']}"
                made = made._replace(kind=kind, message=ours["message"].strip())
            elif made.message.startswith("Lance "):  # of the planner in the JVM, in its own words
                made = made._replace(kind=made.kind.rpartition(".")[2])
            yield made


#: Our error after the words of Spark, and what Spark adds.
_OF_SPARK = re.compile(
    r"^\[\w+\] [\w ]+: (?P<kind>\w+Error): (?P<message>.*?)(?:\s*SQLSTATE.*)?\s*\Z", re.MULTILINE
)


def _raised(where: str, text: str, run: Any, *folders: str) -> Mistake:
    try:
        run()
    except Exception as error:
        kind = type(error)
        name = (
            kind.__name__
            if issubclass(kind, lance_sql.LanceError | AttributeError)
            else f"{kind.__module__}.{kind.__name__}"
        )
        return Mistake(where, text, name, _plain(str(error), *folders))
    return Mistake(where, text, "nothing", "")


def _plain(text: str, *folders: str) -> str:
    """The message without the directory of this run."""
    for folder in folders:
        text = text.replace(f"{folder}/", "")
    return text


@contextlib.contextmanager
def _inside(folder: str) -> Iterator[None]:
    before = os.getcwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def table(made: Iterable[Mistake]) -> str:
    """A table of the page."""
    lines = ["| where | mistake | error | message |", "|---|---|---|---|"]
    for mistake in made:
        message = mistake.message.replace("|", "\\|").replace("<", "&lt;").replace("\n", "<br>")
        text = mistake.text.replace("|", "\\|")
        lines.append(f"| {mistake.where} | `{text}` | {mistake.kind} | {message} |")
    return "\n".join(lines)


def page(text: str) -> str:
    """The page with its table as it is now."""
    return _replaced(text, _BEGIN, table(mistakes()), _END)


def page_for_spark(text: str, made: Iterable[Mistake]) -> str:
    """The page with its table of Spark as it is now."""
    return _replaced(text, _SPARK_BEGIN, table(made), _SPARK_END)


def _replaced(text: str, begin: str, between: str, end: str) -> str:
    before, _, rest = text.partition(begin)
    return f"{before}{begin}\n{between}\n{end}{rest.partition(end)[2]}"


def _write_page() -> None:
    text = page(PAGE.read_text())
    import lance_sql.spark

    if lance_sql.spark.java_problem() is None:
        session = lance_sql.spark.local_session()
        text = page_for_spark(text, mistakes_in_spark(session))
        session.stop()
    PAGE.write_text(text)


if __name__ == "__main__":
    if "--show" in sys.argv:
        print(table(mistakes()))
    else:
        _write_page()
