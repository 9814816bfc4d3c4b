"""The planner in the JVM: a small jar for column pruning, filter pushdown and size estimates in Spark."""

from __future__ import annotations

import sys
from pathlib import Path

_NAME = "lance-sql-spark.jar"


def planner_jar() -> Path | None:
    """The jar that was built with this package; None if the build had no JDK or no PySpark.

    Add it to the class path of a cluster with ``spark.jars``; `local_session` does so automatically.
    """
    # In an editable installation, sources and build output are in different directories.
    folders = [Path(__file__).parent, *(Path(path, "lance_sql", "spark") for path in sys.path)]
    candidates = (folder / _NAME for folder in folders)
    return next((path for path in candidates if path.exists()), None)
