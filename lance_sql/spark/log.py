"""The logger ``lance_sql.spark``: what queries read and what they could leave out, at level INFO."""

from __future__ import annotations

import logging
import os

logger = logging.getLogger(__package__)

# Spark collects what its Python workers log if ``spark.sql.pyspark.worker.logging.enabled`` is set, but lets
# loggers have the level of the root, WARNING.
if "PYSPARK_SPARK_SESSION_UUID" in os.environ and logger.level == logging.NOTSET:
    logger.setLevel(logging.INFO)
