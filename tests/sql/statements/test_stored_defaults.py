"""Defaults are SQL text in a dataset, which may come from a stranger: only constants reach an engine."""

import itertools

import duckdb
import pyarrow as pa
import pytest
from lance_engine.errors import UnsupportedFeatureError

import lance_sql
from lance_sql.catalog.defaults import DEFAULT_KEY, default_of, with_default

#: Expressions that read something, or are more than an expression; {secret} is the path of a file.
HOSTILE = [
    "(SELECT content FROM read_text('{secret}'))",
    "(FROM read_text('{secret}') SELECT content)",
    "1) FROM read_text('{secret}') --",
    "'x'; COPY (SELECT 1) TO '{secret}'",
    "'x' || (SELECT min(name) FROM others)",
    "(SELECT name FROM duckdb_secrets())",
    "current_setting('home_directory')",
    "getvariable('x')",
    "reads_something()",
    "others.name",
    "name",
    "CAST((SELECT 1) AS VARCHAR)",
    "[x for x in (SELECT 1)]",
    "{'a': (SELECT 1)}",
    "query_table('others')",
    "error('executed')",
    "repeat('x', 10000000000)",
    "COLUMNS(*)",
    "$1",
    "\ufffd('x')",
    "(" * 4_000 + "1" + ")" * 4_000,
    "'" + "x" * 20_000 + "'",
]

USES = [
    "INSERT INTO t (id) VALUES (2)",
    "INSERT INTO t (id) SELECT 2",
    "INSERT INTO t BY NAME SELECT 2 AS id",
    "INSERT INTO t VALUES (2, DEFAULT)",
    "INSERT INTO t DEFAULT VALUES",
    "COPY t (id) FROM '{csv}'",
    "UPDATE t SET v = DEFAULT",
    "MERGE INTO t USING (SELECT 2 AS id) s ON t.id = s.id WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id)",
    "MERGE INTO t USING (SELECT 1 AS id) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = DEFAULT",
    "MERGE INTO t USING (SELECT 2 AS id) s ON t.id = s.id WHEN NOT MATCHED THEN INSERT DEFAULT VALUES",
]


def received(path, default):
    """A dataset of somebody else, whose column has a default that no statement of ours stores."""
    field = pa.field("v", pa.string(), metadata={DEFAULT_KEY: default})
    schema = pa.schema([pa.field("id", pa.int64()), field])
    lance_sql.write(pa.table({"id": [1], "v": ["old"]}, schema=schema), path)


@pytest.fixture
def place(tmp_path):
    (tmp_path / "secret.txt").write_text("secret")
    (tmp_path / "rows.csv").write_text("id\n2\n")
    return tmp_path


@pytest.mark.sampled(8)
@pytest.mark.parametrize("engine", ["duckdb", "datafusion"])
@pytest.mark.parametrize("use", USES)
def test_hostile_defaults_are_refused_not_executed(place, engine, use):
    with lance_sql.connect(place, engine=engine) as session:
        if engine == "duckdb":
            session.sql("CREATE TEMP TABLE others AS SELECT 'theirs' AS name")
            session.sql("CREATE MACRO reads_something() AS error('executed')")
        hostile = HOSTILE if engine == "duckdb" else HOSTILE[:2]
        for number, text in enumerate(hostile):
            received(f"{place}/t{number}.lance", text.replace("{secret}", str(place / "secret.txt")))
            statement = use.format(csv=place / "rows.csv").replace(" t ", f" t{number} ", 1)
            statement = statement.replace("t.id", f"t{number}.id")
            with pytest.raises(UnsupportedFeatureError, match="never executed") as caught:
                session.sql(statement)
            assert caught.value.place["column"] == "v"
            assert "DROP DEFAULT" in caught.value.remedy
            rows = lance_sql.open(f"{place}/t{number}.lance").scan().to_table().to_pylist()
            assert rows == [{"id": 1, "v": "old"}]
    assert (place / "secret.txt").read_text() == "secret"


def test_a_value_or_another_default_replaces_a_hostile_one(place):
    received(f"{place}/t.lance", HOSTILE[0])
    with lance_sql.connect(place) as session:
        session.sql("INSERT INTO t VALUES (2, 'given')")
        session.sql("ALTER TABLE t ALTER COLUMN v DROP DEFAULT")
        session.sql("INSERT INTO t (id) VALUES (3)")
        session.sql("ALTER TABLE t ALTER COLUMN v SET DEFAULT 'new'")
        session.sql("INSERT INTO t (id) VALUES (4)")
        rows = session.sql("SELECT v FROM t ORDER BY id").fetchall()
    assert rows == [("old",), ("given",), (None,), ("new",)]


@pytest.mark.parametrize("text", ["(SELECT 1)", "nextval('s')", "current_setting('threads')"])
def test_statements_store_only_constants(tmp_path, text):
    with lance_sql.connect(tmp_path) as session:
        session.sql("CREATE TABLE t (name VARCHAR)")
        for statement in (
            f"ALTER TABLE t ALTER COLUMN name SET DEFAULT {text}",
            f"ALTER TABLE t ADD COLUMN w VARCHAR DEFAULT {text}",
            f"CREATE TABLE u (name VARCHAR DEFAULT {text})",
        ):
            with pytest.raises(lance_sql.LanceError):
                session.sql(statement)
        assert session.tables() == ["t"]
        assert not session.sql("FROM t").arrow().schema.field("name").metadata


def test_a_default_over_columns_is_not_stored(tmp_path):
    with lance_sql.connect(tmp_path) as session:
        session.sql("CREATE TABLE t AS SELECT 'a' AS name")
        for statement in (
            "ALTER TABLE t ALTER COLUMN name SET DEFAULT upper(name)",
            "CREATE TABLE u (name VARCHAR DEFAULT upper(name))",
        ):
            with pytest.raises(lance_sql.LanceError):
                session.sql(statement)
        session.sql("ALTER TABLE t ADD COLUMN w VARCHAR DEFAULT upper(name)")  # only fills rows that exist
        session.sql("INSERT INTO t (name) VALUES ('b')")
        assert session.sql("FROM t ORDER BY name").fetchall() == [("a", "A"), ("b", None)]
        assert not session.sql("FROM t").arrow().schema.field("w").metadata


CONSTANTS = [
    ("INTEGER", "1"), ("INTEGER", "-1"), ("INTEGER", "1 + 2 * 3"), ("DOUBLE", "1.5e3"), ("DOUBLE", "2 ** 3"),
    ("BOOLEAN", "true"), ("VARCHAR", "'it''s'"), ("VARCHAR", "'a' || 'b'"), ("VARCHAR", "NULL"),
    ("VARCHAR", "'\\x41\n\u20ac'"), ("DECIMAL(10, 2)", "1.25"),
    ("BLOB", "'\\x00\\xFF'::BLOB"), ("DATE", "DATE '2024-02-29'"), ("TIME", "TIME '10:11:12.5'"),
    ("TIMESTAMP", "TIMESTAMP '2024-01-02 03:04:05'"), ("TIMESTAMP", "DATE '2024-01-02' + INTERVAL 36 HOUR"),
    ("DATE", "DATE '2024-01-31' + INTERVAL '1' MONTH"), ("INTEGER[]", "[1, 2, NULL]"), ("INTEGER[]", "[]"),
    ("STRUCT(a INTEGER, b VARCHAR[])", "{'a': 1, 'b': ['x']}"), 
    ("MAP(VARCHAR, INTEGER)", "MAP {'k': 1}"), ("DOUBLE", "'NaN'::FLOAT"), ("VARCHAR", "concat('a', 1)"),
]  # fmt: skip


def test_constants_are_those_of_duckdb(tmp_path):
    columns = ", ".join(f"c{n} {kind} DEFAULT {text}" for n, (kind, text) in enumerate(CONSTANTS))
    statements = [f"CREATE TABLE t (id INTEGER, {columns})", "INSERT INTO t (id) VALUES (1)"]
    with lance_sql.connect(tmp_path) as session, duckdb.connect() as plain:
        for statement in statements:
            session.sql(statement)
            plain.execute(statement)
        ours, theirs = (one.sql("FROM t").fetchall() for one in (session, plain))
    assert repr(ours) == repr(theirs)


FUNCTIONS = [
    ("TIMESTAMPTZ", "now()"), ("TIMESTAMPTZ", "current_timestamp"), 
    ("TIMESTAMPTZ", "transaction_timestamp()"),
    ("DATE", "current_date"), ("DATE", "today()"), ("TIMESTAMP", "localtimestamp"), ("VARCHAR", "uuid()"),
    ("VARCHAR", "gen_random_uuid()"), ("VARCHAR", "uuidv7()"), ("DOUBLE", "random()"),
    ("TIMESTAMPTZ", "now() + INTERVAL 1 DAY"), ("TIMESTAMPTZ", "date_trunc('month', now())"),
]  # fmt: skip


@pytest.mark.parametrize("engine", ["duckdb", "datafusion"])
def test_functions_of_the_time_and_random_values_are_defaults(tmp_path, engine):
    columns = ", ".join(f"c{n} {kind} DEFAULT {text}" for n, (kind, text) in enumerate(FUNCTIONS))
    with lance_sql.connect(tmp_path, engine=engine) as session:
        session.sql(f"CREATE TABLE t (id INTEGER, {columns})")
        session.sql("INSERT INTO t (id) VALUES (1), (2)")
        session.sql("INSERT INTO t DEFAULT VALUES")
        rows = session.sql("SELECT * FROM t").fetchall()
    assert all(value is not None for row in rows for value in row[1:])
    for place, (_, text) in enumerate(FUNCTIONS, 1):
        if "uuid" in text or "random" in text:
            assert len({row[place] for row in rows}) == 3


@pytest.mark.slow
def test_what_is_stored_is_a_constant_whatever_is_combined():
    """Parts of hostile and harmless texts, put together at random places: no name of a table gets through."""
    parts = ["1", "'", "''", "(", ")", "SELECT x", "FROM t", "--", "/*", "*/", ";", "now()", "\\", '"', "$$"]
    for chosen in itertools.product(parts, repeat=3):
        text = " ".join(chosen)
        field = pa.field("v", pa.string(), metadata={DEFAULT_KEY: text})
        try:
            safe = default_of(field)
        except UnsupportedFeatureError:
            with pytest.raises(UnsupportedFeatureError):
                with_default(field, text)
            continue
        tree = duckdb.connect().execute("SELECT json_serialize_sql(?)", [f"SELECT ({safe})"]).fetchone()[0]
        assert tree.count("SELECT_NODE") == 1
        assert not any(part in tree for part in ("BASE_TABLE", "COLUMN_REF"))
