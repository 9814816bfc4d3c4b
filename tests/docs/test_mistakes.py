"""The page on errors shows the current messages, and each is one of ours."""

from __future__ import annotations

import builtins

import mistakes

import lance_sql


def test_the_table_is_up_to_date() -> None:
    """If this fails: ``python tests/support/mistakes.py``."""
    text = mistakes.PAGE.read_text()
    assert text == mistakes.page(text)


def test_every_mistake_is_an_error_of_ours() -> None:
    made = list(mistakes.mistakes())
    assert len(made) >= 40
    assert {mistake.where for mistake in made} == {"Python", "DuckDB", "DataFusion", "command line"}
    for mistake in made:
        if mistake.where == "command line":
            assert mistake.kind in ("exit code 1", "exit code 2"), mistake
        else:
            assert "." not in mistake.kind, mistake  # a class that is not ours has its module
        assert mistake.message, mistake
        assert "Traceback" not in mistake.message


def test_what_is_not_refused_and_what_is_foreign_is_seen() -> None:
    fine = mistakes._raised("Python", "1", lambda: 1)
    assert fine.kind == "nothing"
    foreign = mistakes._raised("Python", "int('a')", lambda: int("a"))
    assert foreign.kind == f"{builtins.__name__}.ValueError"
    assert not issubclass(ValueError, lance_sql.LanceError)
