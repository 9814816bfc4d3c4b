"""Reading rows: scans and look-ups by row id."""

from typing import TYPE_CHECKING

from lance_engine.lazy import lazy_names

if TYPE_CHECKING:
    from lance_engine.fetch.pool import helpers
    from lance_engine.scan.code_columns import CodeColumn
    from lance_engine.scan.dictionary_codes import DictionaryCodes
    from lance_engine.scan.extremes import Extremes
    from lance_engine.scan.filter import FilterSteps
    from lance_engine.scan.filters import parse_filter
    from lance_engine.scan.partial import rows_that_may_pass, shared_readers
    from lance_engine.scan.partial import scan as scan_rows
    from lance_engine.scan.paths import column_names
    from lance_engine.scan.plan import FilterPlan
    from lance_engine.scan.scanner import Scanner, repeated
    from lance_engine.scan.splits import ScanSplit
    from lance_engine.scan.stream import Convert, ScanStream
    from lance_engine.scan.system import ROW_ADDRESS, ROW_ID, ROW_NUMBERS, SYSTEM_FIELDS
    from lance_engine.scan.whole_structs import from_the_start, has_inner_structs
    from lance_engine.scan.width import estimated_row_bytes
else:
    __getattr__ = lazy_names(
        __name__,
        {
            "fetch.pool": "helpers",
            "scan.code_columns": "CodeColumn",
            "scan.extremes": "Extremes",
            "scan.filter": "FilterSteps",
            "scan.filters": "parse_filter",
            "scan.partial": "rows_that_may_pass scan=scan_rows shared_readers",
            "scan.paths": "column_names",
            "scan.plan": "FilterPlan",
            "scan.scanner": "Scanner repeated",
            "scan.splits": "ScanSplit",
            "scan.stream": "Convert ScanStream",
            "scan.dictionary_codes": "DictionaryCodes",
            "scan.system": "ROW_ADDRESS ROW_ID ROW_NUMBERS SYSTEM_FIELDS",
            "scan.whole_structs": "from_the_start has_inner_structs",
            "scan.width": "estimated_row_bytes",
        },
    )
