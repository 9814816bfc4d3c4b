"""`write`: all save modes, with or without the planner jar, which Spark requires for some of them."""

from __future__ import annotations

from os import PathLike
from typing import Any, Final, Literal, get_args

from lance_engine.base import public
from lance_engine.errors import DatasetExistsError, InvalidArgumentError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from lance_sql.spark.options import Options
from lance_sql.spark.session import ensure_registered
from lance_sql.spark.tables import option_texts

SaveMode = Literal["append", "overwrite", "errorifexists", "error", "ignore"]
_MODES: Final = get_args(SaveMode)


@public
def write(
    frame: DataFrame, path: str | PathLike[str], mode: SaveMode = "errorifexists", **options: Any
) -> None:
    """Write the DataFrame `frame` as one new version of the Lance dataset at `path`.

    `mode` says what happens to rows that exist. ``append`` adds rows and ``overwrite`` replaces rows and
    schema; both create the dataset if it does not exist. ``errorifexists`` and ``ignore`` only create it.
    ``df.write.save`` supports the last two only with the planner jar. `options` are write options, such as
    ``max_rows_per_file=1 << 20``.
    """
    if not isinstance(frame, DataFrame):
        raise InvalidArgumentError(
            f"Expected a Spark DataFrame, not {type(frame).__name__}",
            remedy="lance_sql.write writes Arrow tables, and data frames of pandas and Polars",
        )
    if mode not in _MODES:
        raise InvalidArgumentError(f"mode must be one of {', '.join(_MODES)}, not {mode!r}")
    ensure_registered(frame.sparkSession)
    texts = option_texts({**options, "path": path})
    creates = mode in ("errorifexists", "error", "ignore")
    if creates:
        texts["create"] = "true"
        if Options.parse(texts).latest() is not None:
            if mode == "ignore":
                return
            raise DatasetExistsError(
                "A dataset already exists", path=str(path), remedy='Use mode="append" or mode="overwrite"'
            )
    writer = (
        frame.write.format("lance").options(**texts).mode("overwrite" if mode == "overwrite" else "append")
    )
    try:
        writer.save()
    except PySparkException:
        # Another writer created the dataset meanwhile.
        if mode != "ignore" or Options.parse(texts).latest() is None:
            raise
