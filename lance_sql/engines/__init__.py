"""One package per SQL engine, with the same structure, behind the interface of `lance_sql.engines.base`.

``table`` is a dataset as the engine scans it, ``names`` makes datasets available by name in a user's own
session, and ``session`` implements our engine interface.
"""
