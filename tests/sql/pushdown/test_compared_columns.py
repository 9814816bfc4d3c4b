"""Which columns of a query only have to be compared: the analysis of its tree."""

from __future__ import annotations

import pytest
from bound_queries import bound

from lance_sql.pushdown.compared_columns import ComparedColumns, compared_columns

COLUMNS = ["a", "b", "n", "s"]


def found(text: str) -> ComparedColumns | None:
    query = bound(text, {"t": COLUMNS})
    return None if query is None else compared_columns(query, ["a", "b", "s"])


def compared(text: str) -> dict[str, str]:
    """The columns that are only compared, with the text in which # stands for each of their mentions."""
    keys = found(text)
    shown = {}
    for column, uses in () if keys is None else keys.columns.items():
        other = text
        for start, end in reversed(uses.places):
            other = f"{other[:start]}#{other[end:]}"
        shown[column] = other
    return shown


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT a, count(*) FROM t GROUP BY a", "SELECT #, count(*) FROM t GROUP BY #"),
        ("SELECT A AS x FROM t GROUP BY a", "SELECT # AS x FROM t GROUP BY #"),
        ('SELECT "a" x FROM t GROUP BY t.a;', "SELECT # x FROM t GROUP BY #;"),
        ("SELECT x.a FROM t AS x GROUP BY X.A", "SELECT # FROM t AS x GROUP BY #"),
        ("SELECT a k FROM t GROUP BY k", "SELECT # k FROM t GROUP BY k"),
        ("SELECT a, sum(n) FROM t GROUP BY 1", "SELECT #, sum(n) FROM t GROUP BY 1"),
        ("SELECT 1, a FROM t GROUP BY 1, a", "SELECT 1, # FROM t GROUP BY 1, #"),
        ("SELECT a, sum(n) FROM t GROUP BY ALL", "SELECT #, sum(n) FROM t GROUP BY ALL"),
        ("SELECT a AS a, a FROM t GROUP BY a", "SELECT # AS a, # FROM t GROUP BY #"),
        ("SELECT count(*) FROM t GROUP BY a", "SELECT count(*) FROM t GROUP BY #"),
        ("SELECT DISTINCT a FROM t", "SELECT DISTINCT # FROM t"),
        ("SELECT DISTINCT a, n + 1 FROM t LIMIT 3", "SELECT DISTINCT #, n + 1 FROM t LIMIT 3"),
        ("SELECT count(DISTINCT a) FROM t", "SELECT count(DISTINCT #) FROM t"),
        (
            "SELECT n, COUNT(DISTINCT t.a) * 2 AS d FROM t GROUP BY n HAVING COUNT(DISTINCT a) > 1 "
            "ORDER BY COUNT(DISTINCT a) DESC, d",
            "SELECT n, COUNT(DISTINCT #) * 2 AS d FROM t GROUP BY n HAVING COUNT(DISTINCT #) > 1 "
            "ORDER BY COUNT(DISTINCT #) DESC, d",
        ),
        (
            "SELECT a FROM t WHERE a IS DISTINCT FROM 'x' AND (n IS NOT DISTINCT FROM 3) GROUP BY a",
            "SELECT # FROM t WHERE a IS DISTINCT FROM 'x' AND (n IS NOT DISTINCT FROM 3) GROUP BY #",
        ),
        (
            "SELECT a FROM t WHERE a <> '' AND lower(a) = 'x' GROUP BY a HAVING n > 1 LIMIT 9 OFFSET 2",
            "SELECT # FROM t WHERE a <> '' AND lower(a) = 'x' GROUP BY # HAVING n > 1 LIMIT 9 OFFSET 2",
        ),
        (
            "SELECT extract(minute FROM n) AS m, a FROM t GROUP BY m, a",
            "SELECT extract(minute FROM n) AS m, # FROM t GROUP BY m, #",
        ),
        (
            "SELECT a, percentile_cont(0.5) WITHIN GROUP (ORDER BY n) FROM t GROUP BY a",
            "SELECT #, percentile_cont(0.5) WITHIN GROUP (ORDER BY n) FROM t GROUP BY #",
        ),
        ("SELECT a FROM t GROUP BY (a)", "SELECT # FROM t GROUP BY (#)"),
        ("SELECT k: a FROM t GROUP BY a", "SELECT k: # FROM t GROUP BY #"),
        ("FROM t SELECT a GROUP BY a", "FROM t SELECT # GROUP BY #"),
        (
            "SELECT a FROM t WHERE n = ? AND n < $2 GROUP BY a",
            "SELECT # FROM t WHERE n = ? AND n < $2 GROUP BY #",
        ),
        ("SELECT a FROM t GROUP BY a ORDER BY a DESC", "SELECT # FROM t GROUP BY # ORDER BY # DESC"),
        ("SELECT a k FROM t GROUP BY a ORDER BY k", "SELECT # k FROM t GROUP BY # ORDER BY k"),
        ("SELECT n, a FROM t GROUP BY n, a ORDER BY 2", "SELECT n, # FROM t GROUP BY n, # ORDER BY 2"),
    ],
)
def test_places(text: str, expected: str | None) -> None:
    assert compared(text).get("a") == expected


@pytest.mark.parametrize(
    ("text", "orders"),
    [
        ("SELECT a FROM t GROUP BY a ORDER BY a DESC NULLS LAST", True),
        ("SELECT a k FROM t GROUP BY a ORDER BY k", True),
        ("SELECT n, a FROM t GROUP BY n, a ORDER BY n, 2 DESC", True),
        ("SELECT n, a FROM t GROUP BY n, a ORDER BY 1", False),
        ("SELECT a, count(*) FROM t GROUP BY a ORDER BY count(*)", False),
    ],
)
def test_order(text: str, orders: bool) -> None:
    keys = found(text)
    assert keys is not None
    assert keys.columns["a"].orders is orders


@pytest.mark.sampled(12)
@pytest.mark.parametrize(
    "text",
    [
        "SELECT a FROM t",
        "SELECT n FROM t WHERE a > 'b' GROUP BY n",
        "SELECT a FROM t ORDER BY a",
        "SELECT a, min(a) FROM t GROUP BY a",
        "SELECT upper(a) FROM t GROUP BY a",
        "SELECT a || 'x' FROM t GROUP BY a",
        "SELECT count(DISTINCT upper(a)) FROM t",
        "SELECT count(DISTINCT a || 'x') FROM t",
        "SELECT count(DISTINCT (a, b)) FROM t",
        "SELECT count(a) FROM t GROUP BY n",
        "SELECT approx_count_distinct(a) FROM t",
        "SELECT count(DISTINCT a) FILTER (WHERE a > 'b') FROM t",
        "SELECT a FROM t GROUP BY lower(a)",
        "SELECT a::VARCHAR FROM t GROUP BY a",
        "SELECT a.x FROM t GROUP BY a",
        "SELECT a 'k' FROM t GROUP BY a",
        "SELECT a FROM t GROUP BY a HAVING a > 'b'",
        "SELECT a AS k FROM t GROUP BY a HAVING k > 'b'",
        "SELECT a AS k FROM t WHERE k > 'b' GROUP BY a",
        "SELECT a AS k, upper(k) FROM t GROUP BY a",
        "SELECT a AS k, upper(k) AS u FROM t GROUP BY k, u",
        "SELECT a AS n, max(n) FROM t GROUP BY a",
        "SELECT a AS b FROM t GROUP BY a",
        "SELECT b AS a, count(*) FROM t GROUP BY a, b",
        "SELECT b AS 'a', count(*) FROM t GROUP BY a, b ORDER BY a",
        "SELECT a AS t FROM t GROUP BY a ORDER BY t",
        "SELECT a FROM t GROUP BY a ORDER BY lower(a)",
        "SELECT a FROM t GROUP BY a ORDER BY a COLLATE NOCASE",
        "SELECT a FROM t GROUP BY a ORDER BY length(a), n",
        "SELECT a FROM t GROUP BY a ORDER BY ALL",
        "SELECT a FROM t GROUP BY a ORDER BY (1)",
        "SELECT a FROM t GROUP BY a ORDER BY ?",
        "SELECT a FROM t GROUP BY a ORDER BY #1",
        "SELECT a, rank() OVER (ORDER BY a) FROM t GROUP BY a",
        "SELECT a, row_number() OVER () FROM t GROUP BY a",
        "SELECT a FROM t GROUP BY a QUALIFY count(*) > 1",
        "SELECT DISTINCT ON (n) a FROM t",
        "SELECT DISTINCT ON (a) a, n FROM t",
        "SELECT DISTINCT * FROM t",
        "SELECT DISTINCT t.* FROM t",
        "SELECT DISTINCT a, * EXCLUDE (b) FROM t",
        "SELECT DISTINCT COLUMNS(*) FROM t",
        "SELECT DISTINCT a, t FROM t",
        "SELECT a, count(t) FROM t GROUP BY a",
        "SELECT a, count(x) FROM t x GROUP BY a",
        "SELECT a FROM t GROUP BY ROLLUP (a)",
        "SELECT a FROM t GROUP BY CUBE (a)",
        "SELECT a FROM t GROUP BY GROUPING SETS ((a), ())",
        "SELECT a FROM t, u GROUP BY a",
        "SELECT a FROM t JOIN u USING (n) GROUP BY a",
        "SELECT a FROM u GROUP BY a",
        "SELECT a FROM t(1) GROUP BY a",
        "SELECT a FROM t TABLESAMPLE 10% GROUP BY a",
        "SELECT a FROM t AS x(b, a) GROUP BY a",
        "SELECT a FROM (SELECT * FROM t) GROUP BY a",
        "WITH t AS (SELECT 1) SELECT a FROM t GROUP BY a",
        "SELECT a FROM t GROUP BY a UNION SELECT a FROM t",
        "SELECT a FROM t WHERE a IN (SELECT b FROM t) GROUP BY a",
        "EXPLAIN SELECT a FROM t GROUP BY a",
        "SELECT a INTO x FROM t GROUP BY a",
    ],
)
def test_other_queries_need_the_strings(text: str) -> None:
    assert "a" not in compared(text)


def test_each_column_is_judged_by_itself() -> None:
    assert compared("SELECT a, min(s), count(DISTINCT b) FROM t GROUP BY a") == {
        "a": "SELECT #, min(s), count(DISTINCT b) FROM t GROUP BY #",
        "b": "SELECT a, min(s), count(DISTINCT #) FROM t GROUP BY a",
    }
