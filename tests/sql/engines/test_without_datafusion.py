"""Where the package datafusion is not installed, all but its engine and its functions in filters works."""

import json
import subprocess
import sys

CODE = """
import json, sys
sys.modules["datafusion"] = None  # importing it fails
import lance_sql
from lance_sql.cli import main

dataset = lance_sql.write([{"id": id, "name": f"Name {id}"} for id in range(10)], "t.lance")
with lance_sql.connect(".") as session:
    session.execute("CREATE TABLE kept (id BIGINT PRIMARY KEY, name VARCHAR CHECK (length(name) > 2))")
    session.execute("INSERT INTO kept FROM t WHERE substr(name, 6) < '5'")
    session.execute("UPDATE kept SET name = upper(name) WHERE md5(name) = md5('Name 2') OR id = 4")
    session.execute("DELETE FROM kept WHERE date_part('year', DATE '2026-01-01' + id::INT) = 2026 AND id = 1")
    found = session.sql("SELECT name FROM kept ORDER BY id").fetchall()
found += [[dataset.count_rows("id > 5 AND lower(name) LIKE '%8'")]]
sys.argv[1:] = ["SELECT max(id) AS last FROM 't.lance'", "--format", "csv"]
try:
    main()
except SystemExit as end:
    assert not end.code

def message(call):
    try:
        return call()
    except Exception as error:
        return f"{type(error).__name__}: {error}"

errors = [
    message(lambda: lance_sql.sql("SELECT 1", engine="datafusion")),
    message(lambda: lance_sql.datafusion.install),
    message(lambda: dataset.count_rows("substr(name, 6) = '5'")),
]
print(json.dumps([found, errors]))
"""


def test_statements_and_filters_without_datafusion(tmp_path):
    run = subprocess.run([sys.executable, "-c", CODE], cwd=tmp_path, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    header, last, told = run.stdout.splitlines()
    assert (header, last) == ("last", "9")
    found, errors = json.loads(told)
    assert found == [["Name 0"], ["NAME 2"], ["Name 3"], ["NAME 4"], [1]]
    assert [error.partition(":")[0] for error in errors] == [
        "EngineNotInstalledError",
        "PackageNotInstalledError",
        "InvalidFilterError",
    ]
    assert all("pip install 'lance-sql[datafusion]'" in error for error in errors)
