"""What the first query of a process imports.

`lance_sql.open` is not among them: its class is a `pyarrow.dataset.Dataset`, and that module imports pandas.
"""

from __future__ import annotations

import datetime
import subprocess
import sys
from importlib.util import find_spec

import pyarrow as pa
import pytest
from lance_engine.write.dataset import write_dataset

ROWS = 40_000

# Nothing of this is needed to answer a query, and each takes longer to import than the query takes.
SLOW = [
    "boto3", "datafusion", "difflib", "fractions", "fsspec", "glob", "obstore", "pandas",
    "pyarrow.dataset", "pyroaring", "pyspark", "rich", "sqlglot", "unicodedata", "yaml",
]  # fmt: skip
# Modules of our own for what these queries do not do.
OTHER_WORK = [
    "lance_engine.encodings.jsonb", "lance_engine.expr.functions", "lance_engine.format.index_section",
    "lance_engine.format.row_ids", "lance_engine.operations.compact", "lance_engine.progress",
    "lance_engine.scan.blobs", "lance_engine.search.query", "lance_engine.table.commit",
    "lance_engine.table.row_id_index", "lance_engine.write.dataset", "lance_sql.display.tables",
    "lance_sql.catalog.prepared", "lance_sql.catalog.secrets", "lance_sql.catalog.transaction",
    "lance_sql.other_names", "lance_sql.pushdown.compared_columns", "lance_sql.pushdown.planning",
    "lance_sql.searches.nearest_first", "lance_sql.searches.parameters", "lance_sql.searches.table",
    "lance_sql.session.explanation", "lance_sql.statements.answers", "lance_sql.statements.upkeep",
]  # fmt: skip

# Lists of constants are sorted by pyarrow's functions, which nothing else in these queries uses.
WITH_FUNCTIONS = {"sql over texts and dates", "lists of values"}

QUERIES = {
    "sql": """
        import lance_sql
        query = f"SELECT number, text FROM '{path}' WHERE number >= 7 AND number < 9"
        rows = lance_sql.sql(query).fetchall()
    """,
    "sql over texts and dates": """
        import lance_sql
        rows = lance_sql.sql(
            f"SELECT number FROM '{path}' WHERE text LIKE 'a1%' AND day < DATE '1994-02-01' AND share > 0.4"
            " AND share < 2.5 AND number IN (1, 11, 12, 100) AND NOT flag"
        ).fetchall()
    """,
    "zones that match in part": """
        import lance_sql
        query = f"SELECT text, share FROM '{path}' WHERE share < 6000.5 AND number % 3 = 1"
        rows = lance_sql.sql(query).fetchall()
    """,
    "rows far apart": """
        import lance_sql
        query = f"SELECT text, day FROM '{path}' WHERE scattered = 7 AND number < 30000"
        rows = lance_sql.sql(query).fetchall()
    """,
    "some of a few words": """
        import lance_sql
        query = f"SELECT count(*), max(share) FROM '{path}' WHERE word = 'w3' OR word > 'w8'"
        rows = lance_sql.sql(query).fetchall()
    """,
    "patterns": """
        import lance_sql
        query = f"SELECT word FROM '{path}' WHERE text LIKE '%77%' AND word NOT LIKE 'w1%'"
        rows = lance_sql.sql(query).fetchall()
    """,
    "patterns of a large table": """
        import lance_sql
        from lance_sql.engines import pushdown
        pushdown._SMALL_BYTES = 0
        query = f"SELECT word FROM '{path}' WHERE (text LIKE '%77%' OR number = -3) AND word NOT LIKE 'w1%'"
        rows = lance_sql.sql(query).fetchall()
    """,
    "lists of values": """
        import lance_sql
        numbers = ", ".join(map(str, range(0, 4000, 13)))
        words = ", ".join(f"'a{number}'" for number in range(0, 3000, 7))
        rows = lance_sql.sql(
            f"SELECT number, word FROM '{path}' WHERE number IN ({numbers}) AND text IN ({words})"
        ).fetchall()
    """,
    "nulls": """
        import lance_sql
        query = f"SELECT gap FROM '{path}' WHERE gap IS NOT NULL AND gap BETWEEN 7 AND 2000"
        rows = lance_sql.sql(query).fetchall()
    """,
    "aggregate": """
        import lance_sql
        query = f"SELECT count(*), max(day) FROM '{path}' WHERE number % 10 = 3"
        rows = lance_sql.sql(query).fetchall()
    """,
}


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> str:
    numbers = range(ROWS)
    table = pa.table(
        {
            "number": numbers,
            "text": [f"a{number}" for number in numbers],
            "day": [datetime.date(1994, 1, 1) + datetime.timedelta(days=number % 100) for number in numbers],
            "share": [number / 2 for number in numbers],
            "flag": [number % 2 == 0 for number in numbers],
            "scattered": [number * 7919 % 1009 for number in numbers],
            "word": [f"w{number * 7919 % 11}" for number in numbers],
            "gap": [None if number % 3 else number for number in numbers],
        }
    )
    found = str(tmp_path_factory.mktemp("first") / "t.lance")
    write_dataset(table, found)
    return found


def test_the_modules_exist() -> None:
    for name in OTHER_WORK:
        assert find_spec(name) is not None, name


@pytest.mark.pushdowns  # forced, they import more
@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", QUERIES)
def test_the_first_query_imports_little(path: str, name: str) -> None:
    lines = "\n".join(line.removeprefix(8 * " ") for line in QUERIES[name].splitlines())
    code = f"import sys\npath = {path!r}\n{lines}\nassert rows\nprint(*sys.modules)"
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=100, check=True
    )
    assert "lance_sql" in run.stdout.split()
    imported = run.stdout.split()
    assert [module for module in SLOW + OTHER_WORK if module in imported] == []
    assert ("pyarrow.compute" in imported) == (name in WITH_FUNCTIONS)
