"""The capabilities of DataFusion."""

from __future__ import annotations

from lance_sql.engines.capabilities import Capabilities
from lance_sql.engines.datafusion.versions import MESSAGES

CAPABILITIES = Capabilities(
    name="datafusion",
    runs_statements_side_by_side=True,
    numbers_parameters=True,
    shares_names=True,
    folds_names=True,
    computes_statements=False,
    has_procedures=False,
    filters_joins=False,
    reads_tables_ahead=True,
    groups_by_numbers=False,
    groups_by_codes=False,
    backslash_escapes=True,
    messages=MESSAGES,
    unknown_column_remedy='Unquoted names are converted to lower case: quote mixed-case names, as in "Name"',
)
