"""One package for each SQL engine, all of one shape, behind the small interface of `lance_sql.engines.base`.

``table`` is a dataset as the engine scans it, ``names`` makes a session of the user's own know datasets by
name, ``session`` is the engine behind our interface.
"""
