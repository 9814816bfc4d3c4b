"""``python -m benchmarks.nested``: queries on nested data and JSON over Parquet and over Lance.

The events are made here from a seed, as trackers record them: structs within structs with nulls at each
level, lists of strings, numbers and structs, maps, and a JSON document per row (text in Parquet). Each engine
has its own file of queries; those of DataFusion lack what it has no function for. The tests compare the
answers, here only their sizes.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

import lance_sql
from benchmarks import paired

QUERIES: Final = Path(__file__).parents[1] / "queries" / "nested"
TABLES: Final = ["events", "products"]
_SEED: Final = 71
_PRODUCTS: Final = 2_000
_SYSTEMS: Final = ["android", "ios", "windows", "macos", "linux"]
_SCREENS: Final = [(360, 800), (390, 844), (412, 915), (820, 1180), (1366, 768), (1920, 1080), (2560, 1440)]
_COUNTRIES: Final = ["DE", "US", "FR", "GB", "JP", "BR", "IN", "IT", "ES", "NL", "PL", "SE"]
_TAGS: Final = ["sale", "new", "mobile", "returning", "email", "beta", "vip", "search", "social", "organic"]
_PLANS: Final = ["free", "basic", "pro", "team"]
_KINDS: Final = ["view", "click", "search", "cart", "purchase"]

_Numbers = npt.NDArray[np.int64]


def queries(engine: str) -> dict[str, str]:
    """The texts by name, in the order of the file; statements may be of several lines."""
    found: dict[str, list[str]] = {}
    for line in (QUERIES / f"{engine}.sql").read_text().splitlines():
        if line.startswith("-- "):
            lines = found.setdefault(line.removeprefix("-- "), [])
        elif line:
            lines.append(line)
    return {name: "\n".join(lines).rstrip(";") for name, lines in found.items() if lines}


class _Made:
    """Random columns of a number of rows."""

    def __init__(self, rows: int) -> None:
        self.rows = rows
        self.random = np.random.default_rng(_SEED)

    def skewed(self, most: int, count: int | None = None) -> _Numbers:
        found = self.random.zipf(1.3, self.rows if count is None else count) % most
        return np.asarray(found, np.int64)

    def absent(self, share: float) -> npt.NDArray[np.bool_]:
        """A mask of nulls."""
        return self.random.random(self.rows) < share

    def offsets(self, most: int, absent: npt.NDArray[np.bool_] | None = None) -> pa.Array:
        """Where the lists of all rows begin; null for the absent ones."""
        lengths = self.skewed(most + 1)
        if absent is not None:
            lengths[absent] = 0
        ends = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
        return pa.array(ends, mask=None if absent is None else np.append(absent, False))


def events(rows: int) -> pa.Table:
    """The events, in the order of time."""
    made = _Made(rows)
    users = made.skewed(rows // 10 + 1)
    plans = made.skewed(len(_PLANS))
    start = np.datetime64("2025-03-01T00:00:00", "ms")
    times = start + np.sort(made.random.integers(0, 30 * 86_400_000, rows)).astype("timedelta64[ms]")
    kinds = made.skewed(len(_KINDS))
    return pa.table(
        {
            "event_id": pa.array(np.arange(rows)),
            "time": pa.array(times, pa.timestamp("ms")).cast(pa.timestamp("us")),
            "user_id": pa.array(users),
            "kind": _named(_KINDS, kinds),
            "device": _device(made),
            "location": _location(made),
            "tags": pa.ListArray.from_arrays(
                offsets := made.offsets(5, made.absent(0.05)),
                _named(_TAGS, made.skewed(10, _length(offsets))),
            ),
            "durations": pa.ListArray.from_arrays(
                offsets := made.offsets(8), pa.array(made.skewed(5_000, _length(offsets)).astype(np.int32))
            ),
            "items": _items(made),
            "attributes": _attributes(made, plans),
            "payload": _payload(made, users, kinds),
        }
    )


def products() -> pa.Table:
    """A small table of what the items of events are."""
    numbers = range(_PRODUCTS)
    return pa.table(
        {
            "sku": [f"sku-{number:05}" for number in numbers],
            "category": [f"category {number % 17}" for number in numbers],
        }
    )


def _named(names: list[str], numbers: _Numbers) -> pa.Array:
    return pa.array(names).take(pa.array(numbers))


def _length(offsets: pa.Array) -> int:
    found: int = offsets[-1].as_py()
    return found


def _device(made: _Made) -> pa.Array:
    sizes = np.array(_SCREENS, np.int32)[made.skewed(len(_SCREENS))]
    screen = pa.StructArray.from_arrays([pa.array(sizes[:, 0]), pa.array(sizes[:, 1])], ["w", "h"])
    models = _named([f"model {number}" for number in range(900)], made.skewed(900))
    return pa.StructArray.from_arrays(
        [_named(_SYSTEMS, made.skewed(len(_SYSTEMS))), models, screen], ["os", "model", "screen"]
    )


def _location(made: _Made) -> pa.Array:
    """Null for one event in ten; the city and the point may be missing, too."""
    countries = made.skewed(len(_COUNTRIES))
    cities = countries * 100 + made.skewed(60)
    names = pa.array([f"city {number}" for number in range(len(_COUNTRIES) * 100)])
    axes = [pa.array(made.random.normal(middle, 8, made.rows)) for middle in (48.0, 9.0)]
    point = pa.StructArray.from_arrays(axes, ["lat", "lon"], mask=pa.array(made.absent(0.3)))
    city = names.take(pa.array(cities, mask=made.absent(0.2)))
    return pa.StructArray.from_arrays(
        [_named(_COUNTRIES, countries), city, point],
        ["country", "city", "point"],
        mask=pa.array(made.absent(0.1)),
    )


def _items(made: _Made) -> pa.Array:
    offsets = made.offsets(6, made.absent(0.3))
    count = _length(offsets)
    skus = made.skewed(_PRODUCTS, count)
    items = pa.StructArray.from_arrays(
        [
            _named([f"sku-{number:05}" for number in range(_PRODUCTS)], skus),
            pa.array((made.skewed(9, count) + 1).astype(np.int32)),
            pa.array(np.round(made.random.gamma(2, 15, count) + 1, 2)),
        ],
        ["sku", "quantity", "price"],
    )
    return pa.ListArray.from_arrays(offsets, items)


def _attributes(made: _Made, plans: _Numbers) -> pa.Array:
    """Maps of up to five entries: some keys in most rows, others in few."""
    values = {
        "plan": (0.9, _named(_PLANS, plans)),
        "campaign": (0.3, _named([f"campaign {number}" for number in range(200)], made.skewed(200))),
        "referrer": (0.5, _named([f"site{n}.example.org" for n in range(500)], made.skewed(500))),
        "experiment": (0.2, _named([f"variant {number}" for number in range(8)], made.skewed(8))),
        "session": (
            0.95,
            pa.array([f"{number:012x}" for number in made.random.integers(0, 1 << 48, made.rows)]),
        ),
    }
    present = np.array([made.random.random(made.rows) < share for share, _ in values.values()]).T
    places = np.flatnonzero(present)
    rows, keys = np.divmod(places, len(values))
    column = pa.concat_arrays([column for _, column in values.values()])
    return pa.MapArray.from_arrays(
        pa.array(np.concatenate([[0], np.cumsum(present.sum(axis=1))]).astype(np.int32)),
        _named(list(values), keys),
        column.take(pa.array(keys * made.rows + rows)),
    )


def _payload(made: _Made, users: _Numbers, kinds: _Numbers) -> pa.Array:
    """Documents with sorted keys and without white space, as JSON columns return them."""
    columns = zip(
        users.tolist(),
        made.skewed(len(_PLANS)).tolist(),
        kinds.tolist(),
        made.random.integers(0, 50_000, made.rows).tolist(),
        made.skewed(300).tolist(),
        made.random.random(made.rows).tolist(),
        strict=True,
    )
    return pa.array([_document(*values) for values in columns], pa.json_())


def _document(user: int, plan: int, kind: int, cents: int, page: int, chance: float) -> str:
    found: dict[str, Any] = {
        "user": {"id": user, "name": f"user {user}", "plan": _PLANS[plan]},
        "page": {
            "url": f"https://shop.example.org/catalogue/{page}",
            "title": f"Page {page} of the catalogue",
        },
        "labels": [f"label {number}" for number in range(page % 4)],
        "ok": chance < 0.97,
    }
    if kind == len(_KINDS) - 1:
        found["total"] = cents / 100
    if chance < 0.01:
        found["error"] = {"code": 500 + page % 5, "message": "The payment was refused"}
    return json.dumps(found, sort_keys=True, separators=(",", ":"))


def prepared(folder: Path, rows: int) -> Path:
    """The folder with the tables in both formats; made once."""
    place = folder.absolute() / f"nested-{rows}"
    if not (place / "products.lance").exists():
        place.mkdir(parents=True, exist_ok=True)
        for name, table in (("events", events(rows)), ("products", products())):
            lance_sql.write(table, place / f"{name}.lance", mode="overwrite", data_storage_version="2.2")
            columns = [
                column.cast(pa.string()) if isinstance(column.type, pa.ExtensionType) else column
                for column in table.columns
            ]
            plain = pa.table(columns, names=table.column_names)
            pq.write_table(plain, place / f"{name}.parquet", row_group_size=paired.ROW_GROUP)
    return place


def main() -> int:
    chosen = paired.arguments("nested", __doc__, 500_000).parse_args()
    place = prepared(chosen.folder, chosen.rows)
    kinds = {
        "Parquet": paired.over_parquet(chosen.engine, place, TABLES),
        "Lance": paired.over_lance(chosen.engine, place),
    }
    title = f"nested data, {chosen.engine}, {chosen.rows:,} rows"
    return paired.compare(title, queries(chosen.engine), kinds, chosen.repetitions)


if __name__ == "__main__":
    sys.exit(main())
