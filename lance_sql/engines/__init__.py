"""One package per SQL engine, with the same structure, behind the interface of `lance_sql.engines.base`.

``table`` is a dataset as the engine scans it, and ``session`` implements our engine interface.
"""
