"""A process that searches through DuckDB's lance extension; `benchmarks.vectors` starts it.

It runs with a Python of its own, which has ``duckdb==1.5.5`` and ``duckdb-extension-lance``: lance-sql needs
a newer DuckDB. It reads one search a line, as JSON, and answers with its milliseconds and the ids it found.
"""

from __future__ import annotations

import glob
import importlib
import json
import sys
import time
from typing import Any


def connect() -> Any:
    duckdb = importlib.import_module("duckdb")
    connection = duckdb.connect(config={"allow_unsigned_extensions": "true"})
    folder = importlib.import_module("duckdb_extension_lance").__path__[0]
    connection.execute(f"LOAD '{glob.glob(f'{folder}/**/*.duckdb_extension', recursive=True)[0]}'")
    return connection


def main() -> None:
    connection = connect()
    for line in sys.stdin:
        asked = json.loads(line)
        begin = time.perf_counter()
        try:
            rows = connection.execute(asked["sql"]).fetchall()
        except Exception as error:
            print(json.dumps({"error": str(error).splitlines()[0][:200]}), flush=True)
            continue
        milliseconds = 1000 * (time.perf_counter() - begin)
        print(json.dumps({"milliseconds": milliseconds, "ids": [row[0] for row in rows]}), flush=True)


if __name__ == "__main__":
    main()
