"""Which keys the scans of a statement may give one another, and that they read less with them."""

from __future__ import annotations

import gc
import shutil
import weakref

import datafusion
import duckdb
import numpy as np
import pyarrow as pa
import pytest
from bound_queries import bound
from lance_engine.tasks import in_background

import lance_sql
from lance_sql.engines import join_keys, key_conditions
from lance_sql.engines.datafusion import materialize
from lance_sql.engines.key_conditions import KeyPath
from lance_sql.pushdown import join_filters, statement_plan
from lance_sql.pushdown.join_paths import key_paths

COLUMNS = {"a": ["k", "x"], "b": ["k", "y", "st"], "c": ["k", "z"]}
A_TO_B = KeyPath("a", "k", "b", "k")
B_TO_A = KeyPath("b", "k", "a", "k")

FOUND = {
    "SELECT * FROM a, b WHERE a.k = b.k": {A_TO_B, B_TO_A},
    "SELECT * FROM a JOIN b USING (k)": {A_TO_B, B_TO_A},
    "SELECT * FROM a AS p JOIN B q ON q.K = p.k AND p.x > q.y": {A_TO_B, B_TO_A},
    "SELECT * FROM a, b WHERE (a.k = b.k AND x = 1) OR (a.k = b.k AND x = 2)": {A_TO_B, B_TO_A},
    "SELECT * FROM a LEFT JOIN b ON a.k = b.k": {A_TO_B},
    "SELECT * FROM a SEMI JOIN b ON a.k = b.k": {A_TO_B, B_TO_A},
    "SELECT * FROM a ANTI JOIN b ON a.k = b.k": {A_TO_B},
    "SELECT * FROM a WHERE EXISTS (SELECT * FROM b WHERE b.k = a.k)": {A_TO_B, B_TO_A},
    "SELECT * FROM a WHERE NOT EXISTS (SELECT * FROM b WHERE b.k = a.k)": {A_TO_B},
    "SELECT * FROM a WHERE x = 1 OR EXISTS (SELECT * FROM b WHERE b.k = a.k)": {A_TO_B},
    "SELECT * FROM a WHERE EXISTS (SELECT count(*) FROM b WHERE b.k = a.k)": {A_TO_B},
    "SELECT * FROM a WHERE k IN (SELECT k FROM b)": {A_TO_B, B_TO_A},
    "SELECT * FROM a WHERE k IN (SELECT k FROM b GROUP BY k HAVING count(*) > 1)": {B_TO_A},
    "SELECT * FROM a WHERE k IN (SELECT k FROM b LIMIT 3)": {B_TO_A},
    "SELECT * FROM a WHERE k NOT IN (SELECT k FROM b)": set(),
    "SELECT * FROM a WHERE k < 9 AND EXISTS (SELECT *, y AS z FROM b WHERE b.k = x)": {
        KeyPath("a", "x", "b", "k"),
        KeyPath("b", "k", "a", "x"),
    },
    "SELECT * FROM a WHERE x > (SELECT max(y) FROM b WHERE b.k = a.k)": {A_TO_B},
    # Keys of a table that occurs several times are those of all of its rows that matter anywhere.
    "SELECT * FROM a JOIN b ON a.k = b.k, b AS other": {B_TO_A},
    "SELECT * FROM a, b, b AS other WHERE a.k = b.k AND a.k = other.k": {A_TO_B, B_TO_A},
    "SELECT * FROM a JOIN b ON a.k = b.k, b AS other, a AS one": set(),
    "SELECT * FROM a, b, c WHERE a.k = b.k AND b.k = c.k": {
        KeyPath(build, "k", probe, "k") for build in "abc" for probe in "abc" if build != probe
    },
    "WITH s AS (SELECT a.k FROM a JOIN b USING (k)) SELECT * FROM s": {A_TO_B, B_TO_A},
    "SELECT * FROM (SELECT a.k FROM a JOIN b USING (k) LIMIT 5) s": {A_TO_B, B_TO_A},
}
NOT_FOUND = [
    "SELECT * FROM a RIGHT JOIN b ON a.k = b.k",
    "SELECT * FROM a FULL JOIN b ON a.k = b.k",
    "SELECT * FROM a NATURAL JOIN b",
    "SELECT * FROM a POSITIONAL JOIN b WHERE a.k = b.k",
    "SELECT * FROM a, b WHERE a.k = b.k OR x = 1",
    "SELECT * FROM a, b WHERE NOT a.k = b.k",
    "SELECT * FROM a, b WHERE a.k IS NOT DISTINCT FROM b.k",
    "SELECT * FROM a, b WHERE a.k + 0 = b.k",
    # Columns with the names of others.
    "SELECT * FROM a AS t(x, k), b WHERE t.k = b.k",
    "SELECT * FROM (SELECT x AS k, k AS x FROM a) t, b WHERE t.k = b.k",
    "SELECT * FROM a, b WHERE k = y",
    "SELECT * FROM a AS st, b WHERE st.k = b.k",
    "SELECT * FROM a WHERE EXISTS (SELECT y AS x FROM b WHERE b.k = x)",
    "SELECT * FROM a WHERE EXISTS (SELECT X: y FROM b WHERE b.k = x)",
    "SELECT * FROM a WHERE EXISTS (SELECT b.* RENAME (y AS x) FROM b WHERE b.k = x)",
    "SELECT * FROM a WHERE EXISTS (SELECT * REPLACE (y AS x) FROM b WHERE b.k = x)",
    "SELECT * FROM a WHERE EXISTS (SELECT COLUMNS('y') AS x FROM b WHERE b.k = x)",
    # What may be read more often than it is named.
    "WITH s AS (SELECT a.k FROM a JOIN b USING (k)) SELECT * FROM s JOIN s AS t USING (k)",
    "WITH s AS (SELECT a.k FROM a JOIN b USING (k)) SELECT * FROM some_view",
    "WITH RECURSIVE s AS (SELECT a.k FROM a, b WHERE a.k = b.k) SELECT * FROM s",
    "SELECT * FROM a TABLESAMPLE 10%, b WHERE a.k = b.k",
    "SELECT * FROM a, b WHERE a.k = b.k USING SAMPLE 3",
    "INSERT INTO c SELECT a.k, b.y FROM a, b WHERE a.k = b.k",
    "this is not a statement",
]


@pytest.mark.parametrize("text", FOUND)
def test_found_paths(text):
    assert set(key_paths(bound(text, COLUMNS))) == FOUND[text]


@pytest.mark.parametrize("text", NOT_FOUND)
def test_what_is_not_certain_gives_no_keys(text):
    query = bound(text, COLUMNS)
    assert query is None or key_paths(query) == []


def test_places_of_tables_are_counted():
    text = "SELECT * FROM a, b, v WHERE a.k = b.k AND b.k IN (SELECT k FROM a)"
    assert bound(text, COLUMNS).counts == {"a": 2, "b": 1}


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    place = tmp_path_factory.mktemp("shop")
    made = np.random.default_rng(3)
    parts = pa.table(
        {"id": range(4000), "kind": np.arange(4000) % 50, "name": [f"part {i}" for i in range(4000)]}
    )
    sales = pa.table(
        {
            "part": made.integers(0, 4000, 400_000),
            "price": made.integers(0, 100, 400_000),
            "note": ["a note of a sale"] * 400_000,
        }
    )
    lance_sql.write(parts, place / "parts.lance")
    lance_sql.write(sales, place / "sales.lance")
    return place


TEXT = "SELECT count(*), sum(price), max(note) FROM sales JOIN parts ON part = id WHERE kind = 7"


def test_an_alias_of_a_subquery_hides_a_column_of_the_outer_query(shop):
    """As in DuckDB: `part = id` means `part = price - 1` here, so rows of sales need no key of parts."""
    subquery = "SELECT price - 1 AS id FROM sales WHERE part = id"
    text = f"SELECT id FROM parts WHERE kind = 7 AND id - 7 IN ({subquery})"
    plain = duckdb.connect()
    for name in ("parts", "sales"):
        plain.register(name, lance_sql.open(shop / f"{name}.lance").to_table())
    expected = plain.execute(text).fetchall()
    with lance_sql.connect(shop) as connection:
        assert sorted(connection.sql(text).fetchall()) == sorted(expected) != []


@pytest.mark.parametrize("engine", ["duckdb", "datafusion"])
def test_the_large_side_reads_what_has_keys(shop, engine):
    with lance_sql.connect(shop, engine=engine) as connection:
        result = connection.sql(TEXT)
        found = result.fetchall()
        sales = next(scan for scan in result.metrics["scans"] if scan["table"] == "sales")
        assert sales["rows_out"] == found[0][0]
        assert 0 < sales["rows_out"] < 400_000 / 25
        assert "80 keys of parts.id" in sales["filter"]
        assert found == connection.sql(TEXT.replace("part = id", "part + 0 = id")).fetchall()


@pytest.mark.parametrize("engine", ["duckdb", "datafusion"])
@pytest.mark.parametrize("digits", [9, 19])
def test_values_of_tables_that_give_keys(shop, tmp_path, engine, digits):
    values = pa.array(range(5, 4005)).cast(pa.decimal128(38, 0)).cast(pa.decimal128(digits, 0))
    costs = {
        "id": range(4000),
        "kind": np.arange(4000) % 50,
        "cost": values,
        "day": pa.array(range(4000)).cast("int32"),
    }
    costs["day"] = costs["day"].cast(pa.date32())
    costs["label"] = pa.array([f"label {i % 9}" if i % 5 else None for i in range(4000)])
    lance_sql.write(pa.table(costs), tmp_path / "parts.lance")
    shutil.copytree(shop / "sales.lance", tmp_path / "sales.lance")
    text = (
        "SELECT count(*), sum(cost), min(cost), max(cost), min(day), max(day), max(label), count(label) "
        "FROM sales JOIN parts ON part = id WHERE kind = 7"
    )
    own = duckdb.connect()
    for name in ("parts", "sales"):
        own.register(name, lance_sql.open(tmp_path / f"{name}.lance").to_table())
    with lance_sql.connect(tmp_path, engine=engine) as connection:
        result = connection.sql(text)
        assert result.fetchall() == own.sql(text).fetchall()
        sales = next(scan for scan in result.metrics["scans"] if scan["table"] == "sales")
        assert "80 keys of parts.id" in sales["filter"]


@pytest.mark.parametrize("engine", ["duckdb", "datafusion"])
def test_a_second_run_samples_nothing_and_sees_changes(tmp_path, shop, engine, monkeypatch):
    samples = []
    sampled_share = key_conditions.sampled_share

    def noted(*arguments, **named):
        samples.append(arguments)
        return sampled_share(*arguments, **named)

    monkeypatch.setattr(key_conditions, "sampled_share", noted)
    for name in ("parts", "sales"):
        shutil.copytree(shop / f"{name}.lance", tmp_path / f"{name}.lance")
    plain = TEXT.replace("part = id", "part + 0 = id")
    with lance_sql.connect(tmp_path, engine=engine) as connection:

        def check(expected_samples, keys=80):
            result = connection.sql(TEXT)
            assert result.fetchall() == connection.sql(plain).fetchall()
            assert len(samples) == expected_samples
            sales = next(scan for scan in result.metrics["scans"] if scan["table"] == "sales")
            assert f"{keys} keys of parts.id" in sales["filter"]
            return sales["rows_out"]

        before = check(1)
        assert check(1) == before
        lance_sql.open(tmp_path / "sales.lance").delete("price < 50")
        assert 0 < check(2) < before
        check(2)
        [(least,)] = connection.sql("SELECT min(id) FROM parts WHERE kind = 7").fetchall()
        lance_sql.open(tmp_path / "parts.lance").delete(f"id = {least}")
        check(3, keys=79)
        check(3, keys=79)


@pytest.mark.parametrize("engine", ["duckdb", "datafusion"])
def test_parameters_change_the_keys_of_a_text(shop, engine):
    text = TEXT.replace("kind = 7", "kind = $1")
    expected = duckdb.connect()
    expected.register("sales", lance_sql.open(shop / "sales.lance").to_table())
    expected.register("parts", lance_sql.open(shop / "parts.lance").to_table())
    with lance_sql.connect(shop, engine=engine) as con:
        for kind in (7, 8, 7, 60):  # no part is of the last kind
            result = con.sql(text, params=[kind])
            assert result.fetchall() == expected.execute(text, [kind]).fetchall()


@pytest.mark.sampled(1)
@pytest.mark.parametrize("engine", ["duckdb", "datafusion"])
def test_what_is_kept_of_joins_is_bounded(shop, engine, monkeypatch):
    monkeypatch.setattr(key_conditions, "_MOST_KEPT", 79)
    with lance_sql.connect(shop, engine=engine) as connection:
        for number in range(statement_plan._CACHED_PLANS + 3):
            assert connection.sql(f"{TEXT} AND {number} = {number}").fetchall()
        kept = connection._session._planner._plans._cache
        assert len(kept) == statement_plan._CACHED_PLANS
        assert [plan.known("join_filters").conditions._known for plan in kept.values()] == [{}] * len(kept)


@pytest.mark.parametrize("engine", ["duckdb", "datafusion"])
def test_explanations_name_the_keys(shop, engine):
    with lance_sql.connect(shop, engine=engine) as connection:
        result = connection.sql(TEXT)
        assert "sales.part in keys of parts.id if these are few" in str(result.explain())
        assert "sales.part in 80 keys of parts.id: applied, " in str(result.explain(analyze=True))


@pytest.mark.parametrize("engine", ["duckdb", "datafusion"])
def test_many_keys_are_not_tested(shop, engine):
    with lance_sql.connect(shop, engine=engine) as connection:
        result = connection.sql(TEXT.replace("kind = 7", "kind < 40"))
        result.fetchall()
        sales = next(scan for scan in result.metrics["scans"] if scan["table"] == "sales")
        assert sales["rows_out"] == 400_000


@pytest.mark.parametrize("engine", ["duckdb", "datafusion"])
def test_explanations_say_why_keys_were_not_tested(shop, engine, monkeypatch):
    with lance_sql.connect(shop, engine=engine) as connection:
        everything = str(connection.explain(TEXT.replace("WHERE kind = 7", ""), analyze=True))
        assert "parts.id: not applied, the scan of parts leaves no rows out" in everything
        for share in ("MOST_PASSING_SHARE", "MOST_PASSING_SHARE_FILTERED"):
            monkeypatch.setattr(key_conditions, share, 1 / 10_000)
        dropped = str(connection.explain(TEXT, analyze=True))
        assert "keys of parts.id: not applied, dropped, 80 or more are too many" in dropped
        assert "in time" not in everything + dropped


TWICE = (
    "SELECT sum(price) FROM sales JOIN parts ON part = id WHERE kind = 7 HAVING sum(price) > "
    "(SELECT sum(price) * 0.01 FROM sales JOIN parts ON part = id WHERE kind = 7)"
)


def sales_of(result):
    return [scan for scan in result.metrics["scans"] if scan["table"] == "sales"]


def test_tables_that_are_read_ahead_give_keys_to_each_join(shop):
    with lance_sql.connect(shop, engine="datafusion") as connection:
        result = connection.sql(TWICE)
        rows = result.fetchall()
        assert rows == connection.sql(TWICE.replace("part = id", "part + 0 = id")).fetchall()
        assert all("80 keys of parts.id" in scan["filter"] for scan in sales_of(result))
        assert sum(scan["rows_out"] for scan in sales_of(result)) < 2 * 400_000 / 25


def test_keys_of_joins_that_need_different_rows(shop):
    text = TWICE.replace("kind = 7)", "kind = 8 OR kind = 9)")
    with lance_sql.connect(shop, engine="datafusion") as connection:
        result = connection.sql(text)
        assert result.fetchall() == connection.sql(text.replace("part = id", "part + 0 = id")).fetchall()
        assert all("240 keys of parts.id" in scan["filter"] for scan in sales_of(result))


@pytest.mark.parametrize(
    ("text", "options"),
    [
        (TWICE.replace("WHERE kind = 7)", ")"), {}),  # one of the joins needs all rows
        (TWICE, {"materialize_bytes": 0}),
    ],
)
def test_tables_that_are_scanned_several_times_give_no_keys(shop, text, options):
    with lance_sql.connect(shop, engine="datafusion", **options) as connection:
        result = connection.sql(text)
        assert result.fetchall() == connection.sql(text.replace("part = id", "part + 0 = id")).fetchall()
        assert all(not scan["filter"] or "keys" not in scan["filter"] for scan in sales_of(result))


def test_engines_that_read_nothing_ahead_collect_no_keys_for_several_joins(shop):
    with lance_sql.connect(shop) as connection:
        result = connection.sql(TWICE)
        assert "keys of" not in str(result.explain(analyze=True))
        assert result.fetchall() == connection.sql(TWICE.replace("part = id", "part + 0 = id")).fetchall()


RETURNED = "SELECT count(*), min(name), max(id) FROM parts JOIN returns ON part = id WHERE reason = 5"


def rows_of_parts(connection):
    result = connection.sql(RETURNED)
    rows = result.fetchall()
    (parts,) = (scan for scan in result.metrics["scans"] if scan["table"] == "parts")
    assert rows == connection.sql(RETURNED.replace("part = id", "part + 0 = id")).fetchall()
    return parts["rows_out"]


@pytest.fixture
def few_returned(shop, monkeypatch):
    """A table of which 30 rows pass, 25 times larger than the one that it is joined with."""
    reasons = np.arange(100_000) % 3000 + 6
    reasons[::3334] = 5
    lance_sql.write(
        {"part": np.arange(100_000) % 4000, "reason": reasons}, shop / "returns.lance", mode="overwrite"
    )
    monkeypatch.setattr(join_filters, "_SMALL_BYTES", 0)
    monkeypatch.setattr(materialize, "_SPARE_BYTES", 0)


def test_few_rows_of_a_larger_table_give_keys(shop, few_returned):
    with lance_sql.connect(shop, engine="datafusion", materialize_bytes=50_000) as connection:
        assert rows_of_parts(connection) == 30
        assert str(connection.explain(RETURNED)).count("loaded into memory") == 1


def test_reading_ahead_stops_if_a_sample_was_misleading(shop, few_returned, monkeypatch):
    monkeypatch.setattr(materialize, "sampled_share", lambda *_, **__: 0.0)
    with lance_sql.connect(shop, engine="datafusion", materialize_bytes=50_000) as connection:
        assert rows_of_parts(connection) == 4_000
        explained = str(connection.explain(RETURNED, analyze=True))
        assert "returns.part: not applied, returns is not read ahead" in explained


@pytest.mark.parametrize("engine", ["duckdb", "datafusion"])
def test_views_of_a_table_that_gets_keys_read_all_of_it(shop, engine):
    with lance_sql.connect(shop, engine=engine) as connection:
        connection.sql("CREATE VIEW cheap AS SELECT id AS other FROM parts WHERE kind = 3")
        text = "SELECT count(*) FROM sales JOIN parts ON part = id WHERE kind = 7"
        text += " AND id + 46 IN (SELECT other FROM cheap)"
        found = connection.sql(text).fetchall()
        assert found[0][0] > 0
        connection.sql("SET lance_disabled_pushdowns = 'all'")
        assert connection.sql(text).fetchall() == found


def test_explaining_runs_nothing(shop):
    with lance_sql.connect(shop) as connection:
        connection.sql("CREATE TEMP TABLE kept (part BIGINT)")
        connection.explain("INSERT INTO kept SELECT part FROM sales JOIN parts ON part = id WHERE kind = 7")
        assert connection.sql("SELECT count(*) FROM kept").fetchall() == [(0,)]


def bounded(run):
    """What `run` returns; fails if it takes too long."""
    task = in_background(run, "bounded")
    assert task.wait(120), "the statement did not end"
    return task.result()


ONE_THREAD = [
    TEXT,
    "SELECT count(*) FROM sales a JOIN sales b ON a.part = b.part JOIN parts ON b.part = id WHERE id = 7",
    "SELECT count(*) FROM parts p JOIN parts q ON p.id = q.id JOIN sales ON part = p.id WHERE p.kind = 7",
    "SELECT count(*) FROM sales WHERE part IN (SELECT id FROM parts WHERE kind = 7 AND EXISTS"
    " (SELECT * FROM sales s WHERE s.part = id))",
    "SELECT count(*) FROM (SELECT part FROM sales JOIN parts ON part = id WHERE kind = 7) s"
    " JOIN parts ON part = id AND kind = 7",
]


@pytest.mark.parametrize("text", ONE_THREAD)
@pytest.mark.parametrize("engine", ["duckdb", "datafusion"])
def test_scans_wait_for_no_others_on_one_thread(shop, engine, text, monkeypatch):
    context = datafusion.SessionContext(datafusion.SessionConfig().with_target_partitions(1))
    own = duckdb.connect(config={"threads": 1})
    session = {"duckdb": own} if engine == "duckdb" else {"datafusion": context}
    with lance_sql.connect(shop, **session) as connection:
        found = bounded(lambda: connection.sql(text).fetchall())
        monkeypatch.setattr(join_filters.JoinFilters, "keys", lambda *_: None)
        assert found == connection.sql(text).fetchall()
    own.close()


@pytest.mark.sampled(1)
@pytest.mark.parametrize("engine", ["duckdb", "datafusion"])
def test_what_ends_early_frees_its_keys(shop, engine, monkeypatch):
    made = []
    begin = join_keys.JoinKeys.__init__

    def noted(keys, *arguments):
        begin(keys, *arguments)
        made.append(weakref.ref(keys))

    monkeypatch.setattr(join_keys.JoinKeys, "__init__", noted)
    text = "SELECT part, note FROM sales JOIN parts ON part = id WHERE kind = 7"
    with lance_sql.connect(shop, engine=engine) as connection:

        def first():
            return len(connection.sql(f"{text} LIMIT 3").fetchall())

        def abandoned():
            with connection.sql(text).reader() as reader:
                return reader.read_next_batch().num_rows

        assert bounded(first) == 3
        assert bounded(abandoned)
        assert bounded(lambda: connection.sql(text).arrow().num_rows) > 3
    gc.collect()
    assert len(made) >= 3
    assert [keys for keys in made if keys() is not None] == []


def test_collecting_ends_as_soon_as_most_rows_pass(shop, monkeypatch):
    monkeypatch.setattr(join_keys, "_FIRST_LOOK", 256)
    collected = join_keys._Collected(1 << 20, 100_000, most_passing=1 / 12)
    for begin in range(0, 50_000, 100):
        collected.add(pa.array(range(begin, begin + 100)), passing_share=0.5)
    assert collected._passed < 1000
    assert not collected._waiting
    collected.finished(None)
    assert collected.keys() is None


def test_tables_that_are_nearly_as_large_give_few_keys():
    filtered, others = (join_keys.JoinKeys((), {}, filters_joins) for filters_joins in (True, False))
    assert (filtered._most_keys(1_000, 120_000), others._most_keys(1_000, 120_000)) == (10_000, 15_000)
    assert (filtered._most_keys(30_000, 128_000), others._most_keys(30_000, 128_000)) == (2_000, 4_000)
    assert filtered._most_keys(10**9, 10**12) == others._most_keys(10**9, 10**12) == 1 << 20


@pytest.mark.parametrize(
    ("engine", "outcome"),
    [("duckdb", "dropped, 160 or more are"), ("datafusion", "160 keys of parts.id: app")],
)
def test_engines_that_filter_joins_take_fewer_keys_of_large_tables(shop, monkeypatch, engine, outcome):
    monkeypatch.setattr(join_filters, "_SMALL_BYTES", 0)
    with lance_sql.connect(shop, engine=engine) as connection:
        lance_sql.write(
            {"part": np.arange(8_000) % 4000, "price": range(8_000), "note": ["sold"] * 8_000},
            shop / "few_sales.lance",
            mode="overwrite",
        )
        text = TEXT.replace("sales", "few_sales").replace("kind = 7", "kind IN (7, 8)")
        assert outcome in str(connection.explain(text, analyze=True))
