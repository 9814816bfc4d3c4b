"""DataFusion compares numbers instead of strings where a query does no more than that with them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import datafusion
import numpy as np
import pyarrow as pa
import pytest
from lance_engine.errors import ColumnNotFoundError

import lance_sql
from lance_sql.session import numbered_keys

ROWS = 150_000


@pytest.fixture(autouse=True)
def of_small_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(numbered_keys, "_LEAST_FILTERED_ROWS", 1)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("numbers")
    random = np.random.default_rng(7)
    phrases = ["", "it's", "Zoë", "a much longer string than fits in twelve bytes", None]
    data = pa.table(
        {
            "id": range(ROWS),
            "phrase": pa.array([phrases[i] for i in random.integers(0, 5, ROWS)]),
            "Model": pa.array([f"model {i}" for i in random.integers(0, 400, ROWS)]),
            "both": pa.array([f"lower {i}" for i in random.integers(0, 3, ROWS)]),
        }
    )
    dataset = lance_sql.write(data, str(found / "t.lance"), max_rows_per_file=90_000)
    dataset.delete("id % 11 = 3")
    return found


def rows(found: pa.Table) -> list[tuple[object, ...]]:
    return sorted((tuple(row.values()) for row in found.to_pylist()), key=repr)


def is_numbered(result: lance_sql.QueryResult) -> bool:
    return isinstance(result._query, numbered_keys.NumberedQuery)


NUMBERED = [
    "SELECT phrase, count(*) AS n FROM t WHERE phrase <> '' GROUP BY phrase ORDER BY n DESC LIMIT 3",
    'SELECT phrase, "Model", min(id), count(*) FROM t GROUP BY phrase, "Model"',
    "SELECT count(DISTINCT phrase), count(*) FROM t",
    "SELECT both AS b, count(DISTINCT phrase), count(DISTINCT id) FROM t GROUP BY b HAVING count(*) > 9",
    'SELECT DISTINCT "Model" FROM t WHERE id < 100',
    "SELECT PHRASE, id % 3 AS third FROM t GROUP BY phrase, third ORDER BY phrase NULLS FIRST, third DESC",
    "SELECT phrase, count(*) FROM t GROUP BY phrase ORDER BY phrase DESC",
    "SELECT x.both, max(x.id) FROM t AS x WHERE x.id < $1 GROUP BY 1",
    "SELECT phrase FROM t WHERE id < 0 GROUP BY phrase",
]
AS_THEY_ARE = [
    "SELECT phrase, count(*) FROM t GROUP BY phrase HAVING phrase > 'a'",
    "SELECT upper(phrase), count(*) FROM t GROUP BY phrase",
    'SELECT id % 2 AS "PHRASE", count(*) FROM t GROUP BY "PHRASE"',
    "SELECT phrase, row_number() OVER (ORDER BY phrase) FROM t GROUP BY phrase",
    "SELECT a.phrase, count(*) FROM t a JOIN t b USING (id) GROUP BY a.phrase",
    "SELECT DISTINCT ON (phrase) phrase, id FROM t WHERE phrase <> '' ORDER BY phrase, id",
    "SELECT phrase, count(*) FROM t GROUP BY ROLLUP (phrase)",
    "SELECT string_agg(DISTINCT phrase, ',' ORDER BY phrase) FROM t",
]


@pytest.mark.parametrize("text", [*NUMBERED, *AS_THEY_ARE])
def test_the_rows_are_those_of_the_strings(place: Path, text: str) -> None:
    params = [5_000] if "$1" in text else None
    with (
        lance_sql.connect(str(place), engine="datafusion") as con,
        lance_sql.connect(str(place), engine="datafusion") as plain,
    ):
        plain._engine.capabilities = replace(plain._engine.capabilities, groups_by_numbers=False)
        expected = plain.sql(text, params).arrow()
        for _ in range(2):
            result = con.sql(text, params)
            found = result.arrow()
            assert is_numbered(result) == (text in NUMBERED)
            assert found.schema == expected.schema
            assert rows(found) == rows(expected)
            if "ORDER BY" in text and "LIMIT" not in text and "string_agg" not in text:
                assert found.to_pylist() == expected.to_pylist()
        streamed = con.sql(text, params).reader()
        assert streamed.schema == expected.schema
        assert rows(streamed.read_all()) == rows(expected)


def test_the_plan_shows_the_numbers(place: Path) -> None:
    with lance_sql.connect(str(place), engine="datafusion") as con:
        assert "phrase, Model: compared as numbers" in str(con.explain(NUMBERED[1]))
        assert "compared as numbers" not in str(con.explain(AS_THEY_ARE[0]))
        assert con.table_names() == ["t"]


@pytest.mark.parametrize("keeps_case", [True, False])
def test_names_of_own_contexts(place: Path, keeps_case: bool) -> None:
    setting = "datafusion.sql_parser.enable_ident_normalization"
    config = datafusion.SessionConfig().with_target_partitions(3)
    own = datafusion.SessionContext(config.set(setting, "false" if keeps_case else "true"))
    with lance_sql.connect(str(place), datafusion=own) as con:
        quoted = con.sql('SELECT "Model", count(*) FROM t GROUP BY "Model"')
        assert is_numbered(quoted)
        assert quoted.arrow().num_rows == 400
        text = "SELECT Model, count(DISTINCT phrase) FROM t GROUP BY Model"
        if not keeps_case:
            with pytest.raises(ColumnNotFoundError):
                con.sql(text)
            return
        result = con.sql(text)
        assert is_numbered(result)
        assert result.columns == ["Model", "count(DISTINCT t.phrase)"]
        # An alias in another case is another name there, and the column itself is not.
        hidden = con.sql("SELECT id % 2 AS PHRASE, count(*) FROM t GROUP BY PHRASE")
        assert not is_numbered(hidden)
        assert hidden.arrow().num_rows == 2


def test_each_row_is_decoded_once(place: Path) -> None:
    with lance_sql.connect(str(place), engine="datafusion") as con:
        result = con.sql("SELECT phrase, count(*) FROM t GROUP BY phrase")
        assert result.arrow().num_rows == 5
        assert result.metrics["rows_read"] == ROWS


def test_new_strings_and_other_sessions(tmp_path: Path) -> None:
    count = 120_000
    lance_sql.write(
        {"id": range(count), "kind": [f"kind {i % 9}" for i in range(count)]}, tmp_path / "t.lance"
    )
    text = "SELECT kind, count(*) AS n FROM t GROUP BY kind"
    with lance_sql.connect(str(tmp_path), engine="datafusion") as con, con.cursor() as other:
        before = con.sql(text)
        assert is_numbered(before)
        con.sql("INSERT INTO t SELECT id, 'new' FROM t WHERE id < 7")
        assert ("new", 7) in rows(con.sql(text).arrow())
        assert ("new", 7) in rows(other.sql(text).arrow())
        # It was planned over the version before.
        assert before.arrow().num_rows == 9
