"""The logger ``lance_sql.spark``: what queries read and skipped, at level INFO."""

from __future__ import annotations

import logging
import os

logger = logging.getLogger(__package__)

# Spark collects the logs of its Python workers if ``spark.sql.pyspark.worker.logging.enabled`` is set, but
# leaves loggers at the level of the root, WARNING.
if "PYSPARK_SPARK_SESSION_UUID" in os.environ and logger.level == logging.NOTSET:
    logger.setLevel(logging.INFO)
