"""Spark's Python processes have what all of them import before they are forked.

After each task or statement that fails, Spark forks a new one, which would import pandas, Arrow and the
package again: that took two thirds of the processor time of the Spark tests. Only sessions of tests have this
folder in their path.
"""

import sys

if "pyspark.daemon" in sys.orig_argv:
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from pyspark.sql import worker  # noqa: F401
        from pyspark.sql.pandas import types  # noqa: F401

        import pyspark_lance_sql  # noqa: F401
