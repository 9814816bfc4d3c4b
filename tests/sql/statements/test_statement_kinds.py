"""One table says what statements may do; sessions, engines, PEP 249 and the shell all ask it."""

from __future__ import annotations

import pytest

from lance_sql.engines.duckdb.settings import Changes
from lance_sql.session.session_cache import leaves_nothing
from lance_sql.statements.answers import _HANDLERS
from lance_sql.text.kinds import KINDS, Does, changed_name
from lance_sql.text.statement import Statement


@pytest.mark.parametrize(
    ("text", "does"),
    [
        ("SELECT 1", Does.QUERY),
        ("((SELECT 1))", Does.QUERY),
        ("FROM t", Does.QUERY),
        ("WITH a AS (SELECT 1) FROM a", Does.QUERY),
        ("WITH a AS (SELECT 1) INSERT INTO t FROM a", Does.ROWS),
        ("insert into t values (1)", Does.ROWS),
        ('"INSERT"', Does.OTHER),
        ("END", Does.TRANSACTION),
        ("DROP VIEW v", Does.OBJECTS),
        ("USE lake", Does.SESSION),
        ("DESC t", Does.SHOWS),
        ("", Does.OTHER),
    ],
)
def test_statements_do_what_their_words_say(text, does):
    known = Does.QUERY | Does.ROWS | Does.TRANSACTION | Does.OBJECTS | Does.SESSION | Does.SHOWS
    assert Statement(text).does & known == does


def test_every_word_that_is_answered_has_a_kind():
    assert set(_HANDLERS) <= set(KINDS)
    changing = {word for word, does in KINDS.items() if does & (Does.CHANGES | Does.SESSION)}
    assert changing <= set(_HANDLERS)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("INSERT OR REPLACE INTO t VALUES (1)", "t"),
        ("UPDATE t SET a = 1", "t"),
        ("DELETE FROM t", "t"),
        ("TRUNCATE t", "t"),
        ("CREATE OR REPLACE TEMP TABLE IF NOT EXISTS t (a INT)", "t"),
        ("COMMENT ON TABLE t IS 'x'", "t"),
        ('CREATE VIEW "temp" AS SELECT 1', '"temp"'),
    ],
)
def test_the_changed_name(text, name):
    tokens = Statement(text).tokens
    assert tokens[changed_name(tokens)].text == name


@pytest.mark.parametrize(
    ("text", "changes_names"),
    [
        ("EXPLAIN ANALYZE CREATE TABLE made AS SELECT 1 AS a", True),
        ("EXPLAIN SELECT 1", False),
        ("EXPLAIN (FORMAT json) (SELECT 1)", False),
        ("MERGE INTO t USING u ON t.a = u.a WHEN MATCHED THEN DELETE", False),
        ("TRUNCATE t", False),
    ],
)
def test_names_are_read_again_after_what_may_change_them(text, changes_names):
    changes = Changes(own=True)
    with changes.during(text):
        pass
    assert (changes.of_names > 0) is changes_names


def test_queries_that_leave_nothing_share_sessions():
    for text in ("VALUES (1)", "TABLE t", "SELECT CASE WHEN a THEN 1 END, replace(b, 'x', 'y') FROM t"):
        assert leaves_nothing(Statement(text))
    for text in (
        "WITH a AS (SELECT 1) DELETE FROM t",
        "SELECT setseed(1)",
        "FROM (SHOW TABLES)",
        "PIVOT t ON a",
    ):
        assert not leaves_nothing(Statement(text))
