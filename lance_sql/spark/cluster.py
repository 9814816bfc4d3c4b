"""Runs work on the cluster: one Spark task per piece, progress, and cleanup of files from failed tasks."""

from __future__ import annotations

import re
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final, TypeVar

from lance_engine import errors
from lance_engine.base import Reporter
from lance_engine.errors import LanceError, UnsupportedFeatureError
from lance_engine.io import Store
from lance_engine.write import DATA_FOLDER
from pyspark import InheritableThread
from pyspark.sql import SparkSession

# A cancelled task is assumed to have stopped when no new file of its job appears for this long.
QUIET_SECONDS: Final = 3.0
SECONDS_BETWEEN_LOOKS: Final = 0.2
MAX_ABORT_SECONDS: Final = 20.0

#: An error of ours at the end of a stack, before that of the JVM.
_OURS: Final = re.compile(r"^lance_engine\.errors\.(\w+): (.*?)(?=\n\n|\n\tat |\Z)", re.MULTILINE | re.DOTALL)

Task = TypeVar("Task")
Result = TypeVar("Result")


def run_tasks(
    spark: SparkSession,
    tasks: Sequence[Task],
    function: Callable[[Task], Result],
    reporter: Reporter,
    stage: str,
    rows: Sequence[int],
) -> list[Result]:
    """The results of `function` for each task, in order; each may run on another machine, and more than once.

    `rows` are the row counts of the tasks, for progress. An exception raised by progress cancels the job.
    """
    if not tasks:
        return []
    reporter.begin(stage, sum(rows))
    context = spark_context(spark)
    numbered = list(zip(tasks, rows, strict=True))
    done = context.accumulator(0)

    def run(item: tuple[Task, int]) -> Result:
        result = function(item[0])
        done.add(item[1])
        return result

    def job() -> list[Result]:
        results: list[Result] = context.parallelize(numbered, len(numbered)).map(run).collect()
        return results

    results: list[Result] = watched(
        spark, job, f"lance: {stage}", lambda: reporter.update(done.value, sum(rows))
    )
    reporter.end()
    return results


def watched(
    spark: SparkSession, job: Callable[[], Result], description: str, look: Callable[[], None]
) -> Result:
    """Run a Spark job in a thread and call `look` meanwhile; an exception of `look` cancels the job."""
    context = spark_context(spark)
    group = f"lance-{uuid.uuid4().hex}"
    outcome: list[Any] = []

    def run() -> None:
        context.setJobGroup(group, description, interruptOnCancel=True)
        try:
            outcome.append((True, job()))
        except BaseException as error:
            outcome.append((False, error))

    thread = InheritableThread(target=run, session=spark)
    thread.start()
    try:
        while thread.is_alive():
            thread.join(SECONDS_BETWEEN_LOOKS)
            look()
    except BaseException:
        context.cancelJobGroup(group)
        thread.join()
        raise
    succeeded, value = outcome[0]
    if not succeeded:
        ours = _of_task(value)
        if ours is not None:
            raise ours from None  # the stacks of Spark and its worker say no more
        raise value
    result: Result = value
    return result


def _of_task(error: Exception) -> LanceError | None:
    """Our own error that a task raised, which Spark passes on as text."""
    found = list(_OURS.finditer(str(error)))
    kind = getattr(errors, found[-1][1], None) if found else None
    return kind(found[-1][2].strip()) if isinstance(kind, type) and issubclass(kind, LanceError) else None


def spark_context(spark: SparkSession) -> Any:
    """The context of a session; UnsupportedFeatureError on Spark Connect, which has none."""
    try:
        return spark.sparkContext
    except Exception as error:
        raise UnsupportedFeatureError(
            "Maintenance on the cluster needs a classic Spark session, not Spark Connect",
            remedy="Run the operation on one machine: lance_sql.open(path)",
        ) from error


@contextmanager
def tagged_files(store: Store) -> Iterator[str]:
    """A tag for the names of files that a job writes: they are removed if the block fails."""
    tag = uuid.uuid4().hex
    try:
        yield tag
    except BaseException:
        remove_tagged(store, tag)
        raise


def remove_tagged(store: Store, tag: str) -> None:
    """Remove the data files of a job, including those that stopping tasks still finish."""
    began = last_found = time.monotonic()
    while time.monotonic() - last_found < QUIET_SECONDS and time.monotonic() - began < MAX_ABORT_SECONDS:
        paths = files_with(store, tag)
        for path in paths:
            store.delete(path)
        if paths:
            last_found = time.monotonic()
        time.sleep(SECONDS_BETWEEN_LOOKS)


def files_with(store: Store, tag: str) -> list[str]:
    """The data files that carry a tag."""
    return [path for path in store.list(DATA_FOLDER) if tag in path]
