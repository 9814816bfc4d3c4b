"""The planner in the JVM: a small jar, with which Spark prunes columns, pushes filters and knows sizes."""

from __future__ import annotations

import sys
from pathlib import Path

_NAME = "lance-sql-spark.jar"


def planner_jar() -> Path | None:
    """The jar that was built with this package; None where the build had no JDK or no PySpark.

    Put it on the class path of a cluster with ``spark.jars``; `local_session` does so by itself.
    """
    # In an editable installation the sources are elsewhere than what the build made.
    folders = [Path(__file__).parent, *(Path(path, "lance_sql", "spark") for path in sys.path)]
    candidates = (folder / _NAME for folder in folders)
    return next((path for path in candidates if path.exists()), None)
