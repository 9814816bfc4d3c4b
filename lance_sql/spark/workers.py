"""What is particular to the Python processes in which Spark runs our code."""

from __future__ import annotations

import gc
import os

_settled = False


def settle() -> None:
    """Take what is loaded by now out of the collection of garbage, once, in a worker that Spark will reuse.

    Spark collects all garbage after every task and every call of the planner. With Arrow, pandas and this
    package loaded that takes 30 ms of processor time, longer than reading a small table.
    """
    global _settled
    if not _settled and os.environ.get("SPARK_REUSE_WORKER"):
        _settled = True
        gc.collect()
        gc.freeze()
