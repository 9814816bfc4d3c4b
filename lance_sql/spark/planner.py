"""The planner in the JVM: a small jar for column pruning, filter pushdown and size estimates in Spark."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Final

from lance_sql.spark.log import logger

_told = False
_NAME = "lance-sql-spark.jar"
#: The variable of the environment of Python processes whose session was told when it was registered.
TOLD: Final = "LANCE_SQL_TOLD"
#: The class of the jar with which Spark finds the data source.
PROVIDER: Final = "lancesql.spark.LanceProvider"
#: The class of the jar of catalogs.
CATALOG: Final = "lancesql.spark.LanceCatalog"


def planner_jar() -> Path | None:
    """The jar that was built with this package; None if the build found no JDK, or no jars of Spark.

    Add it to the class path of a cluster with ``spark.jars``; `local_session` does so automatically.
    """
    # In an editable installation, sources and build output are in different directories.
    folders = [Path(__file__).parent, *(Path(path, "lance_sql", "spark") for path in sys.path)]
    candidates = (folder / _NAME for folder in folders)
    return next((path for path in candidates if path.exists()), None)


def tell_without_planner() -> None:
    """Warn, once in a session, that Spark plans without the jar: it then reads all columns of all rows."""
    global _told
    if _told or "pysail" in sys.modules:  # Sail has no JVM
        return
    _told = True
    if os.environ.get(TOLD) or _another_process_told():
        return
    jar = planner_jar()
    remedy = (
        "this installation has no jar: install a wheel of lance-sql, or build it where there are a JDK 17 or "
        "newer and Maven or PySpark"
        if jar is None
        else f"start the session with spark.jars={jar} (lance_sql.spark.local_session does)"
    )
    logger.warning(
        "Spark works without the planner of lance-sql: it reads all columns of all rows of Lance tables, and "
        "refuses save() in its default mode and in mode('ignore'). To change that, %s. Without it, "
        "lance_sql.spark.write has all modes, and the options 'columns' and 'filter' read less",
        remedy,
    )


def _another_process_told() -> bool:
    """Spark reads and writes in several Python processes; they share a folder that ends with the session."""
    folder = os.environ.get("SPARK_LOCAL_DIRS", "").split(",")[0]
    try:
        if folder:
            Path(folder, "lance-sql-told").touch(exist_ok=False)
    except FileExistsError:
        return True
    except OSError:
        return False
    return False
