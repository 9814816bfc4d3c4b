"""Settings for the Python processes in which Spark runs our code."""

from __future__ import annotations

import gc
import os

from lance_sql.spark.versions import task_has_one_processor

_settled = False


def settle() -> None:
    """Exclude loaded objects from garbage collection, once, in a worker that Spark will reuse.

    Spark runs a full garbage collection after every task and every call of the planner. With Arrow, pandas
    and this package loaded, that takes 30 ms of processor time, longer than reading a small table.
    """
    global _settled
    if not _settled and os.environ.get("SPARK_REUSE_WORKER"):
        _settled = True
        gc.collect()
        gc.freeze()


def has_one_processor() -> bool:
    """Whether Spark gave this task one processor, as it does by default, since other tasks run on the others.

    False outside of tasks, and where ``LANCE_SQL_THREADS`` says how many threads to use.
    """
    return "LANCE_SQL_THREADS" not in os.environ and task_has_one_processor()
