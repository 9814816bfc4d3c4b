"""Which columns of a query only have to be compared: the analysis of its text."""

from __future__ import annotations

import duckdb
import pytest

from lance_sql.text.entry_calls import Call
from lance_sql.text.entry_calls import with_calls as with_entry_calls
from lance_sql.text.grouped_keys import GroupedKeys, grouped_keys
from lance_sql.text.tokens import tokenize

COLUMNS = ["a", "b", "n", "s"]


def found(text: str) -> GroupedKeys | None:
    return grouped_keys(tokenize(text), "t", COLUMNS, ["a", "b", "s"])


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
        "SELECT a FROM t GROUP BY (a)",
        "SELECT a::VARCHAR FROM t GROUP BY a",
        "SELECT a.x FROM t GROUP BY a",
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
        "SELECT a 'k' FROM t GROUP BY a",
        "SELECT k: a FROM t GROUP BY a",
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
        "SELECT DISTINCT FROM t GROUP BY a",
        "SELECT a FROM t(1) GROUP BY a",
        "SELECT a FROM t TABLESAMPLE 10% GROUP BY a",
        "SELECT a FROM t AS x(b, a) GROUP BY a",
        "SELECT a FROM (SELECT * FROM t) GROUP BY a",
        "WITH t AS (SELECT 1) SELECT a FROM t GROUP BY a",
        "SELECT a FROM t GROUP BY a UNION SELECT a FROM t",
        "SELECT a FROM t WHERE a IN (SELECT b FROM t) GROUP BY a",
        "SELECT a FROM t WHERE a IN (FROM u) GROUP BY a",
        "SELECT a FROM t WHERE a IN (TABLE u) GROUP BY a",
        "FROM t SELECT a GROUP BY a",
        "EXPLAIN SELECT a FROM t GROUP BY a",
        "SELECT a INTO x FROM t GROUP BY a",
        "SELECT a FROM t GROUP BY a LIMIT a",
    ],
)
def test_other_queries_need_the_strings(text: str) -> None:
    assert "a" not in compared(text)


def test_each_column_is_judged_by_itself() -> None:
    assert compared("SELECT a, min(s), count(DISTINCT b) FROM t GROUP BY a") == {
        "a": "SELECT #, min(s), count(DISTINCT b) FROM t GROUP BY #",
        "b": "SELECT a, min(s), count(DISTINCT #) FROM t GROUP BY a",
    }


def test_items_get_the_names_that_they_lack() -> None:
    keys = found("SELECT a, b AS x, count(DISTINCT b), count(DISTINCT b) y, n FROM t GROUP BY a, x, n")
    assert keys is not None
    assert [item.is_named for item in keys.items] == [False, True, False, True, False]
    assert (keys.columns["a"].shown, keys.columns["a"].changed) == ((0,), (0,))
    assert (keys.columns["b"].shown, keys.columns["b"].changed) == ((1,), (1, 2, 3))


def with_calls(text: str, *strings: str) -> tuple[str, list[str]]:
    """The text with @ for calls that can be columns and # for columns, and these calls.

    Those of functions among `strings` return strings.
    """
    keys = grouped_keys(
        tokenize(text),
        "t",
        COLUMNS,
        ["a", "b", "s"],
        lambda call: "compared" if call.written.split("(")[0] in strings else "anywhere",
    )
    if keys is None:
        return text, []
    places = [(place, "@") for uses in keys.calls.values() for place in uses.places]
    places += [(place, "#") for uses in keys.columns.values() for place in uses.places]
    for (start, end), sign in sorted(places, reverse=True):
        text = f"{text[:start]}{sign}{text[end:]}"
    return text, sorted(call.written for call in keys.calls)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT avg(length(a)) FROM t", "SELECT avg(@) FROM t"),
        ("SELECT n, avg(LENGTH(t.a)) FROM t GROUP BY n", "SELECT n, avg(@) FROM t GROUP BY n"),
        ("SELECT a, max(length(a)) FROM t GROUP BY a", "SELECT #, max(@) FROM t GROUP BY #"),
        (
            "SELECT length( a ) + 1, count(*) FROM t WHERE length(a) > 1 GROUP BY length(A) "
            "HAVING length(a) > 2 ORDER BY length(a)",
            "SELECT @ + 1, count(*) FROM t WHERE length(a) > 1 GROUP BY @ HAVING @ > 2 ORDER BY @",
        ),
        (
            "SELECT sum(strpos(a, 'X')), sum(strpos(a, 'x')), sum(strpos(b, 'x')) FROM t",
            "SELECT sum(@), sum(@), sum(@) FROM t",
        ),
    ],
)
def test_values_of_functions(text: str, expected: str) -> None:
    assert with_calls(text)[0] == expected


def test_constants_keep_their_case() -> None:
    calls = with_calls("SELECT max(strpos(a, 'X')), max(strpos(a, 'x')), max(STRPOS(A, 'x')) FROM t")[1]
    assert calls == ["strpos(\"string\", 'X')", "strpos(\"string\", 'x')"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "SELECT regexp_replace(a, 'x(.)', '\\1') AS k, count(*) FROM t GROUP BY k",
            "SELECT @ AS k, count(*) FROM t GROUP BY k",
        ),
        ("SELECT upper(a), min(a) FROM t GROUP BY upper(a)", "SELECT @, min(a) FROM t GROUP BY @"),
        (
            "SELECT n, count(DISTINCT left(a, 3)) FROM t GROUP BY 1",
            "SELECT n, count(DISTINCT @) FROM t GROUP BY 1",
        ),
        ("SELECT DISTINCT substr(a, -2, 1) FROM t GROUP BY ALL", "SELECT DISTINCT @ FROM t GROUP BY ALL"),
        # Engines refuse this: the call is no longer one of the grouped column.
        ("SELECT a, upper(a) FROM t GROUP BY a", "SELECT #, @ FROM t GROUP BY #"),
        ("SELECT upper(a) || 'x' FROM t GROUP BY upper(a)", None),
        ("SELECT upper(a) AS k FROM t GROUP BY k ORDER BY k", None),
        ("SELECT upper(a) AS k FROM t GROUP BY k HAVING k > 'X'", None),
        ("SELECT upper(a) AS k FROM t WHERE k > 'X' GROUP BY k", None),
        ("SELECT min(upper(a)) FROM t GROUP BY n", None),
        ("SELECT upper(a) AS n FROM t GROUP BY n", None),
    ],
)
def test_strings_of_functions(text: str, expected: str | None) -> None:
    found, calls = with_calls(text, "regexp_replace", "upper", "left", "substr")
    assert (found if calls else None) == expected


@pytest.mark.parametrize(
    "text",
    [
        "SELECT length(a) FROM t",  # a limit may need few of them
        "SELECT length(a) FROM t LIMIT 3",
        "SELECT avg(length(a || 'x')) FROM t",
        "SELECT avg(length(n)) FROM t",
        "SELECT avg(strpos(a, b)) FROM t",
        "SELECT avg(strpos('x', a)) FROM t",
        "SELECT avg(strpos(a, ?)) FROM t",
        "SELECT avg(strpos(a, E'x')) FROM t",
        "SELECT avg(strpos(a, 'x', 'y')) FROM t",
        "SELECT avg(x.length(a)) FROM t",
        "SELECT avg(length(x.a)) FROM t",
        "SELECT avg(hash(a)) FROM t",
        "SELECT b AS a, sum(n) FROM t GROUP BY b ORDER BY max(length(a))",
        "SELECT b 'a', sum(n) FROM t GROUP BY b ORDER BY max(length(a))",
        "SELECT a: b, sum(n) FROM t GROUP BY b ORDER BY max(length(a))",
        f"SELECT regexp_replace(a, 'x', '{'y' * 70}') AS k FROM t GROUP BY k",
        "SELECT avg(length(a)) FROM t, u",
        "SELECT avg(length(a)) OVER () FROM t GROUP BY a",
    ],
)
def test_other_calls_stay(text: str) -> None:
    assert with_calls(text, "regexp_replace")[1] == []


#: Their other cases have as many bytes, or one less or more.
LETTERS = "a\u0130\u0131\u017f\u0250\u2c6f\u212a\u1e9e"


@pytest.mark.parametrize(
    ("call", "most"),
    [
        ("upper(a)", 3),
        ("lower(a)", 3),
        ("left(a, 5)", 1),
        ("reverse(a)", 1),
        ("regexp_extract(a, '(.*)', 1)", 1),
        ("regexp_replace(a, '.', '\u00e4\u00e4')", 1),
        ("regexp_replace(a, '(.*)', '\\1x\\0\\1')", 4),
    ],
)
def test_the_bytes_that_functions_return_are_bounded(call: str, most: int) -> None:
    calls: list[Call] = []
    with_entry_calls(tokenize(f"SELECT {call}"), [], ["a"], lambda found: not calls.append(found))
    texts = ["", *LETTERS, LETTERS * 5]
    rows = duckdb.execute(f"SELECT {call} FROM (SELECT unnest($1) AS a)", [texts]).fetchall()
    found, size = (sum(len(text.encode()) for text in all) for all in ([text for (text,) in rows], texts))
    assert found <= calls[0].longest(len(texts), size)
    assert calls[0].longest(0, size) == most * size
