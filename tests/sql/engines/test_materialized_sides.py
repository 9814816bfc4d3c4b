"""Small sides of joins are read ahead in DataFusion: same rows, other plans."""

from __future__ import annotations

import datafusion
import numpy as np
import pyarrow as pa
import pytest
from lance_engine.errors import LanceError

import lance_sql
from lance_sql.engines.datafusion import materialize


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    directory = tmp_path_factory.mktemp("shop")
    random = np.random.default_rng(3)
    count = 200_000
    sales = {"item": random.integers(0, 50, count), "amount": random.random(count), "note": ["x"] * count}
    items = {"item": np.arange(50), "kind": [f"kind {n % 5}" for n in range(50)], "unused": [None] * 50}
    lance_sql.write(pa.table(sales), directory / "sales.lance", max_rows_per_file=60_000)
    lance_sql.write(pa.table(items), directory / "items.lance")
    return directory


@pytest.fixture
def plans(monkeypatch):
    """The physical plans that were made over tables in memory, None where there was no such plan."""
    made = []
    real = materialize.planned_with_counts

    def recording(*arguments):
        frame = real(*arguments)
        made.append(None if frame is None else str(frame.execution_plan().display_indent()))
        return frame

    monkeypatch.setattr("lance_sql.engines.datafusion.session.planned_with_counts", recording)
    return made


JOIN = """SELECT kind, count(*) AS n, round(sum(amount), 6) AS total FROM sales JOIN items USING (item)
WHERE amount < 0.5 GROUP BY kind ORDER BY kind"""


def test_the_small_side_is_built_from(shop, plans):
    one_side = 1 << 16
    with lance_sql.connect(shop, engine="datafusion", materialize_bytes=one_side) as connection:
        rows = connection.sql(JOIN).fetchall()
        assert connection.sql(JOIN).fetchall() == rows
    with lance_sql.connect(shop, engine="datafusion", materialize_bytes=0) as connection:
        assert connection.sql(JOIN).fetchall() == rows
    assert plans[0].count("DatasetExec") == 1
    assert "CollectLeft" in plans[0]
    assert plans[2] is None


def test_everything_that_fits(shop, plans):
    with lance_sql.connect(shop, engine="datafusion") as connection:
        connection.sql(JOIN).arrow()
    assert "DatasetExec" not in plans[0]


def test_small_sides_of_megabytes_get_one_hash_table(tmp_path, plans, monkeypatch):
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    count = 200_000
    rows = pa.table({"id": np.arange(count), "text": [f"text {n % 1000}" for n in range(count)]})
    lance_sql.write(rows, tmp_path / "small.lance")
    many = pa.table({"id": np.arange(3 * count) // 2, "x": np.arange(3 * count)})
    lance_sql.write(many, tmp_path / "big.lance")
    found = []
    text = (
        "SELECT text, count(*) AS n, sum(x) AS s FROM small JOIN big USING (id) GROUP BY text ORDER BY text"
    )
    with lance_sql.connect(tmp_path, engine="datafusion") as connection:
        found.append(connection.sql(text).fetchall())
    own = datafusion.SessionContext(datafusion.SessionConfig().with_target_partitions(2))
    with lance_sql.connect(tmp_path, datafusion=own) as connection:
        found.append(connection.sql(text).fetchall())
    assert found[0] == found[1]
    assert len(found[0]) == 1000
    assert ["CollectLeft" in plan for plan in plans] == [True, False]


def test_a_side_of_unknown_size_is_not_built_from(tmp_path, plans):
    """DataFusion expects a row for each shop, where there are 200 sales of each."""
    shops, orders, sales = 100, 2_000, 20_000
    numbers = np.arange(sales)
    tables = {
        "shops": {"shop": range(shops), "name": [f"shop {number}" for number in range(shops)]},
        "sales": {"sold_by": numbers % shops, "sold_in": numbers % orders},
        "orders": {"order_id": range(orders), "state": ["open", "sent"] * (orders // 2)},
    }
    for name, columns in tables.items():
        lance_sql.write(pa.table(columns), tmp_path / f"{name}.lance")
    with lance_sql.connect(tmp_path, engine="datafusion") as connection:
        rows = connection.sql(
            "SELECT count(*), count(DISTINCT name) FROM shops, sales, orders "
            "WHERE shop = sold_by AND order_id = sold_in AND state = 'open'"
        ).fetchall()
    assert rows == [(sales // 2, shops // 2)]
    joins = [line for line in str(plans[0]).splitlines() if "HashJoinExec" in line]
    assert len(joins) == 2
    assert "on=[(order_id@0, sold_in@" in joins[0]


@pytest.mark.parametrize(
    "text",
    [
        "SELECT sum(amount) FROM sales",
        "CREATE VIEW c AS SELECT items.kind FROM items JOIN sales USING (item)",
    ],
)
def test_statements_that_are_planned_once(shop, plans, text):
    with lance_sql.connect(shop, engine="datafusion") as connection:
        connection.sql(text).arrow()
    assert plans == [None]


@pytest.mark.parametrize(
    "text",
    [
        "SELECT a.item, count(*) FROM items a JOIN items b ON a.item = b.item WHERE a.kind = 'kind 1' "
        "GROUP BY 1 ORDER BY 1",
        "SELECT count(*) FROM sales WHERE amount > (SELECT avg(amount) FROM sales s WHERE s.item = 3)",
        "SELECT count(*) FROM items i WHERE EXISTS "
        "(SELECT * FROM sales s WHERE s.item = i.item AND s.amount > 0.9999)",
        "SELECT count(unused), count(*) FROM items NATURAL JOIN sales WHERE amount < 0.3",
        "SELECT * FROM items UNION ALL SELECT item, kind, unused FROM items WHERE item = 2 "
        "ORDER BY 1 LIMIT 5",
        "WITH top AS (SELECT item, sum(amount) AS s FROM sales GROUP BY item) "
        "SELECT kind FROM items JOIN top USING (item) WHERE s = (SELECT max(s) FROM top)",
        "SELECT item FROM items WHERE item > 47 AND item IN (SELECT item FROM sales WHERE item > 40) "
        "ORDER BY 1",
        "SELECT count(*) FROM items, sales WHERE 1 = 0",
    ],
)
def test_the_rows_are_those_of_plain_scans(shop, text):
    with (
        lance_sql.connect(shop, engine="datafusion") as ours,
        lance_sql.connect(shop, engine="datafusion", materialize_bytes=0) as plain,
    ):
        assert ours.sql(text).fetchall() == plain.sql(text).fetchall()


def test_comments_before_a_query(shop, plans):
    with lance_sql.connect(shop, engine="datafusion") as connection:
        explained = str(connection.explain(f"-- sales by kind\n/* of\nitems */ {JOIN}"))
    assert explained.count("loaded into memory") == 2


def test_names_keep_their_meaning(shop):
    with lance_sql.connect(shop, engine="datafusion") as connection:
        connection.sql(JOIN).arrow()
        assert connection.sql("SELECT * FROM items LIMIT 1").columns == ["item", "kind", "unused"]
        plan = str(connection.sql("SELECT * FROM items LIMIT 1").explain())
        assert "DatasetExec" in plan


def test_a_context_of_the_users_own_keeps_its_partitions(shop):
    context = datafusion.SessionContext(datafusion.SessionConfig().with_target_partitions(3))
    connection = lance_sql.connect(shop, engine=context)
    assert "number_of_fragments=3" in str(connection.explain("SELECT sum(amount) FROM sales"))
    assert len(connection.sql(JOIN).fetchall()) == 5


def test_wrong_settings(shop):
    with pytest.raises(LanceError, match="negative"):
        lance_sql.connect(shop, engine="datafusion", materialize_bytes=-1)
    with pytest.raises(LanceError, match="DuckDB has no option"):
        lance_sql.connect(shop, materialize_bytes=1)
