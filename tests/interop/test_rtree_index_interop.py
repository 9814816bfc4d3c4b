"""RTREE indices of pylance: conditions on the coordinates of points and boxes."""

import lance
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from lance_engine.dataset import DatasetVersion

import lance_sql
from tests.support.indices import indices_serving

ROWS = 20_000
STRUCTS = {"geoarrow.point": ("x", "y"), "geoarrow.box": ("xmin", "ymin", "xmax", "ymax")}


def geometries(name: str, rows: int, seed: int) -> pa.Table:
    random = np.random.default_rng(seed)
    low = random.random((rows, 2)) * 100
    sides = [*low.T, *(low + random.random((rows, 2))).T]
    fields = [pa.field(side, pa.float64(), False) for side in STRUCTS[name]]
    nulls = pa.array(np.arange(rows) % 50 == 7)
    values = pa.StructArray.from_arrays(
        [pa.array(side) for side in sides[: len(fields)]], fields=fields, mask=nulls
    )
    field = pa.field("g", values.type, metadata={"ARROW:extension:name": name})
    return pa.Table.from_arrays(
        [pa.array(range(rows)), values], schema=pa.schema([("id", pa.int64()), field])
    )


@pytest.fixture(scope="module", params=[False, True], ids=["addresses", "stable"])
def paths(request, tmp_path_factory) -> dict[str, str]:
    folder, found = tmp_path_factory.mktemp("rtree"), {}
    for name in STRUCTS:
        path = found[name] = str(folder / name)
        options = {"enable_stable_row_ids": request.param}
        ds = lance.write_dataset(geometries(name, ROWS, 0), path, max_rows_per_file=ROWS // 2, **options)
        ds.create_scalar_index("g", "RTREE")
        more = geometries(name, 500, 1)
        lance.write_dataset(more.set_column(0, "id", pc.add(more["id"], ROWS)), path, mode="append")
        lance.dataset(path).delete("id % 31 = 4")
    return found


POINTS = [
    "g.x BETWEEN 10 AND 12 AND g.y BETWEEN 40 AND 43",
    "g.x < 3 AND g.y < 3",
    "g.x >= 99 AND g.x <= 200 AND g.y = 5",
    "g.x > 10 AND g.x < 12 AND g.y >= 40 AND g.y < 43 AND id < 9000",
    "(g.x < 3 AND g.y < 3) OR (g.x BETWEEN 50 AND 51 AND g.y BETWEEN 50 AND 51)",
    "g.x < -5 AND g.y < 1000",
]
BOXES = [
    "g.xmin <= 12 AND g.xmax BETWEEN 10 AND 200 AND g.ymin <= 3 AND g.ymax >= 1",
    "g.xmin BETWEEN 5 AND 6 AND g.ymin <= 7",
    "g.xmax <= 4 AND g.ymin <= 4 AND g.xmin >= 2",
]
CASES = [("geoarrow.point", filter) for filter in POINTS] + [("geoarrow.box", filter) for filter in BOXES]


@pytest.mark.parametrize(("name", "filter"), CASES)
def test_boxes(paths, name, filter):
    found = indices_serving(paths[name], filter)
    assert not found or found[0] == ("g_idx", "rtree")
    assert found or name == "geoarrow.box"


SCANNED = ["g.x < 3", "g.x > 99 AND g.y > 99", "g.x < 3 AND g.y IS NULL", "NOT (g.x > 2 AND g.y > 1)"]


@pytest.mark.parametrize("filter", SCANNED)
def test_what_bounds_no_box_is_scanned(paths, filter):
    assert not indices_serving(paths["geoarrow.point"], filter)


def test_nearly_nothing_is_read(paths):
    filter = "g.x BETWEEN 10 AND 11 AND g.y BETWEEN 40 AND 41"
    scan = DatasetVersion.open(paths["geoarrow.point"]).scan(["id"], filter=filter)
    scan.to_table()
    assert scan.metrics.rows_decoded < 1000


@pytest.mark.parametrize("engine", ["duckdb", "datafusion"])
def test_in_sql(paths, engine):
    ds = lance_sql.open(paths["geoarrow.point"])
    query = f"SELECT count(*) AS n FROM '{ds.uri}' WHERE g.x BETWEEN 10 AND 12 AND g.y BETWEEN 40 AND 43"
    expected = ds.to_table(filter=POINTS[0]).num_rows
    assert lance_sql.sql(query, engine=engine).fetchall() == [(expected,)]


def test_inspected(paths):
    ds = lance_sql.open(paths["geoarrow.point"])
    (segment,) = ds.index_statistics("g_idx")["segments"]
    assert segment["rows"] == ROWS - ROWS // 50
    assert segment["levels"] == 2
    assert ds.verify().num_rows == 0
