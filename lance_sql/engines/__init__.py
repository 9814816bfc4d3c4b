"""One module for each SQL engine, behind the small interface of `lance_sql.engines.base`."""
