"""Parts of statements reach the engine as the user wrote them: names, values and types are DuckDB's."""

import duckdb
import pytest

import lance_sql

TABLE = (
    "CREATE TABLE t AS SELECT 1::INTEGER AS i, 2.5::DOUBLE AS f, 'abc' AS s, true AS b, "
    "DATE '2026-01-31' AS d, MAP {'a': 1} AS m"
)
#: Each is spelled in another way by the writer of the parser, or was read otherwise afterwards.
ROWWISE = (
    "i::INT4, i::FLOAT8, d::DATETIME, s::STRING, s::BYTEA, 'a'::VARCHAR(3), i ** 2, @i, +i, s ^@ 'a', "
    "len(s), if(i = 1, 2, 3), substr(s, 1, 1), position('a' in s), mod(i, 2), log10(f), INTERVAL '1 month', "
    "1_000, date_trunc('month', d), list_contains([1], i), '{\"a\": 1}' ->> 'a', [x + 1 for x in [1, 2]], "
    "MAP {}::MAP(INTEGER, INTEGER), d - INTERVAL 1 DAY, split(s, 'b'), current_date"
)
AGGREGATES = "list(i), string_agg(s, ','), group_concat(s), min_by(i, i), bool_and(b), countif(b)"
ALTERATIONS = [
    "ALTER TABLE t ALTER m TYPE MAP(VARCHAR, INTEGER) USING MAP {}",
    "ALTER TABLE t ALTER s TYPE VARCHAR USING s[1:2] /* the first two */ || '-' -- and a sign",
    "ALTER TABLE t ALTER f TYPE BIGINT USING f::INT8 // 2",
    "ALTER TABLE t ADD COLUMN l STRING[] DEFAULT ['a', 'b']",
]


@pytest.fixture
def pair(tmp_path):
    with lance_sql.connect(tmp_path) as ours, duckdb.connect() as plain:
        for connection in (ours, plain):
            connection.execute(TABLE)
        yield ours, plain


def same(pair, *statements):
    """The columns and rows that the last statement returns are the same."""
    ours, plain = pair
    for text in statements:
        result, expected = ours.execute(text), plain.execute(text)
    assert result.columns == [name for name, *_ in expected.description]
    assert result.fetchall() == expected.fetchall()


@pytest.mark.parametrize("expressions", [ROWWISE, AGGREGATES])
def test_created_tables_have_the_columns_of_the_query(pair, expressions):
    same(pair, f"CREATE TABLE r AS SELECT {expressions} FROM t", "FROM r")
    same(pair, f"CREATE TABLE empty AS SELECT {expressions} FROM t WITH NO DATA", "FROM empty")


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO t SELECT * FROM t",
        "UPDATE t SET s = substr(s, 1, 2)",
        "DELETE FROM t",
        "MERGE INTO t USING (SELECT 1 AS k) ON k = i WHEN MATCHED THEN UPDATE SET f = 3::FLOAT4",
    ],
    ids=lambda statement: statement[:6],
)
def test_returned_columns_have_their_names_in_queries(pair, statement):
    plain = pair[1]
    returned, expected = (one.execute(f"{statement} RETURNING {ROWWISE}, *") for one in pair)
    assert returned.fetchall() == expected.fetchall()
    query = plain.execute(f"SELECT {ROWWISE}, * FROM t")  # DuckDB itself shows casts that it adds
    assert returned.columns == [name for name, *_ in query.description]


@pytest.mark.parametrize(
    "columns", ["merge_action, *", "* EXCLUDE i", "* EXCLUDE (i, f)", "t.*", "* REPLACE (i::INT8 AS i)"]
)
def test_stars_of_merge_stand_for_the_columns_of_the_table(pair, columns):
    merge = "MERGE INTO t USING (SELECT 1 AS k) ON k = i WHEN MATCHED THEN UPDATE SET f = 3 RETURNING"
    same(pair, f"{merge} {columns}")


@pytest.mark.parametrize("statement", ALTERATIONS)
def test_alterations_compute_what_is_written(pair, statement):
    same(pair, statement, "FROM t")
