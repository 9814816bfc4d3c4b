"""Lance tables by path: as DataFrames, and in the text of Spark SQL."""

from __future__ import annotations

import datetime
import json
import uuid
from collections.abc import Mapping
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from sqlglot.dialects.spark import Spark
from sqlglot.tokens import Token, TokenType

from lance_sql.spark.session import ensure_registered
from lance_sql.spark.source import FORMAT


def table(spark: SparkSession, path: str, **options: Any) -> DataFrame:
    """A Lance dataset as a DataFrame; `options` are read options, such as ``version=3``."""
    ensure_registered(spark)
    return spark.read.format(FORMAT).options(**option_texts(options)).load(str(path))


def sql(spark: SparkSession, text: str, **options: Any) -> DataFrame:
    """Run the Spark SQL query `text`, in which ``lance.`path` `` is the dataset at that path.

    After the path you can write ``VERSION AS OF 3`` (or the name of a tag) or ``TIMESTAMP AS OF '...'``.
    `options` apply to all datasets, for example ``storage_options``.
    """
    ensure_registered(spark)
    views: dict[tuple[str, tuple[tuple[str, str], ...]], str] = {}
    texts, done = [], 0
    tokens = Spark().tokenize(text)
    for number, token in enumerate(tokens):
        reference = _table_at(tokens, number)
        if reference is None or token.start < done:
            continue
        path, choice, stop = reference
        view = views.setdefault((path, tuple(choice.items())), f"lance_{uuid.uuid4().hex}")
        texts += [_literal(text[done : token.start]), f"{{{view}}}"]
        done = stop
    # Spark inserts the frames in place of their names. On Connect, views would have to outlive the query.
    frames = {
        view: table(spark, path, **options, **dict(choice_items))
        for (path, choice_items), view in views.items()
    }
    rest = text[done:]
    return spark.sql("".join([*texts, _literal(rest)]), **frames) if frames else spark.sql(rest)


def _literal(text: str) -> str:
    """Text with escaped braces, which do not refer to frames."""
    return text.replace("{", "{{").replace("}", "}}")


def _table_at(tokens: list[Token], number: int) -> tuple[str, Mapping[str, str], int] | None:
    """The path, the version and the end of ``lance.`path` [VERSION AS OF ...]`` if it starts here."""
    here = tokens[number : number + 3]
    if len(here) < 3 or here[0].text.lower() != "lance" or here[0].token_type == TokenType.STRING:
        return None
    if here[1].token_type != TokenType.DOT or here[2].token_type != TokenType.IDENTIFIER:
        return None
    if number and tokens[number - 1].token_type == TokenType.DOT:
        return None
    path, stop = here[2].text, here[2].end + 1
    words = tokens[number + 3 : number + 8]
    if words and words[0].text.upper() == "FOR":
        words = words[1:]
    kind = words[0].text.upper() if len(words) >= 4 else ""
    if kind in ("VERSION", "TIMESTAMP") and [word.text.upper() for word in words[1:3]] == ["AS", "OF"]:
        value = words[3]
        if kind == "TIMESTAMP":
            choice = {"as_of": value.text}
        else:
            choice = {"version" if value.text.isdecimal() else "tag": value.text}
        return path, choice, value.end + 1
    return path, {}, stop


def option_texts(options: Mapping[str, Any]) -> dict[str, str]:
    """Options as text, as Spark requires: lists and mappings as JSON."""
    texts = {}
    for name, value in options.items():
        if value is None:
            continue
        if isinstance(value, bool):
            texts[name] = str(value).lower()
        elif isinstance(value, (list, tuple)):
            texts[name] = json.dumps(list(value))
        elif isinstance(value, Mapping):
            texts[name] = json.dumps(dict(value))
        else:
            texts[name] = (
                value.isoformat() if isinstance(value, datetime.date | datetime.time) else str(value)
            )
    return texts
