"""``python -m benchmarks.clickbench``: the 43 queries of ClickBench over Parquet and over Lance.

The table is made here from a seed: the columns that the queries name, in the order of the real one, by
counter and day. The tests compare the answers, here only their sizes.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

import lance_sql
from benchmarks import paired

QUERIES: Final = Path(__file__).parents[1] / "queries" / "clickbench" / "queries.sql"
_SEED: Final = 62
_SUMS: Final = ", ".join(f"SUM(ResolutionWidth + {number})" for number in range(90))


def queries() -> list[str]:
    """The texts, in the order of ClickBench."""
    lines = QUERIES.read_text().splitlines()
    return [line.rstrip(";").replace("{sums}", _SUMS) for line in lines if not line.startswith("--")]


def hits(rows: int) -> pa.Table:
    """The table: skewed like page views: a few counters and phrases are frequent."""
    made = np.random.default_rng(_SEED)

    def skewed(most: int, exponent: float = 1.3) -> npt.NDArray[np.int64]:
        return np.asarray(made.zipf(exponent, rows) % most, np.int64)

    def some(share: float, values: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        return np.where(made.random(rows) < share, values, 0)

    def texts(numbers: npt.NDArray[np.int64], text: Callable[[int], str]) -> pa.Array:
        found, places = np.unique(numbers, return_inverse=True)
        return pa.array([text(int(number)) for number in found]).take(pa.array(places))

    seconds = made.integers(0, 31 * 86_400, rows)
    url, referer, phrase = skewed(rows // 4 + 1, 1.2), skewed(rows // 6 + 1, 1.2), skewed(rows // 10 + 1)
    phone = some(0.05, skewed(80) + 1)
    start = np.datetime64("2013-07-01T00:00:00", "s")
    moments = start + seconds.astype("timedelta64[s]")
    table = pa.table(
        {
            "WatchID": pa.array(made.integers(0, 1 << 62, rows)),
            "Title": texts(url % 5_000, _title),
            "EventTime": pa.array(moments, pa.timestamp("s")).cast(pa.timestamp("us")),
            "EventDate": pa.array(moments.astype("datetime64[D]"), pa.date32()),
            "CounterID": pa.array((62 + skewed(6_000, 1.6) - 1).astype(np.int32)),
            "ClientIP": pa.array((skewed(1 << 30, 1.1) * 2_654_435_761 % (1 << 31)).astype(np.int32)),
            "RegionID": pa.array(skewed(9_000).astype(np.int32)),
            "UserID": pa.array(1_000_000_000_000_000_000 + skewed(rows // 5 + 1, 1.15)),
            "URL": texts(url, _url),
            "Referer": texts(some(0.8, referer + 1), lambda number: _url(number) if number else ""),
            "IsRefresh": pa.array(some(0.1, np.ones(rows, np.int64)).astype(np.int16)),
            "ResolutionWidth": pa.array(
                made.choice(np.array([0, 1_024, 1_280, 1_366, 1_920], np.int16), rows)
            ),
            "SearchEngineID": pa.array(some(0.15, skewed(90) + 1).astype(np.int16)),
            "SearchPhrase": texts(some(0.13, phrase + 1), _phrase),
            "AdvEngineID": pa.array(some(0.01, skewed(20) + 1).astype(np.int16)),
            "MobilePhone": pa.array(phone.astype(np.int16)),
            "MobilePhoneModel": texts(phone, lambda number: f"model {number}" if number else ""),
            "TraficSourceID": pa.array((skewed(9) - 1).astype(np.int16)),
            "URLHash": pa.array(url),
            "RefererHash": pa.array(referer),
            "DontCountHits": pa.array(some(0.05, np.ones(rows, np.int64)).astype(np.int16)),
            "IsLink": pa.array(some(0.1, np.ones(rows, np.int64)).astype(np.int16)),
            "IsDownload": pa.array(some(0.01, np.ones(rows, np.int64)).astype(np.int16)),
            "WindowClientWidth": pa.array(made.integers(300, 1_900, rows).astype(np.int16)),
            "WindowClientHeight": pa.array(made.integers(200, 1_000, rows).astype(np.int16)),
        }
    )
    return table.sort_by([("CounterID", "ascending"), ("EventDate", "ascending"), ("UserID", "ascending")])


def _url(number: int) -> str:
    site = "www.google.com" if number % 97 == 0 else f"site{number % 800}.example.org"
    return f"http://{site}/catalogue/{number % 1_000}/page{number}.html?source=list&item={number * 7}"


def _title(number: int) -> str:
    return f"{'Google' if number % 61 == 0 else 'Shop'} - page {number} of the catalogue of everything"


def _phrase(number: int) -> str:
    return f"how to find thing {number}" if number else ""


def prepared(folder: Path, rows: int) -> Path:
    """The folder with the table in both formats; made once."""
    place = folder.absolute() / f"clickbench-{rows}"
    file = place / "hits.parquet"
    if not file.exists() or not (place / "hits.lance").exists():
        place.mkdir(parents=True, exist_ok=True)
        table = hits(rows)
        lance_sql.write(table, place / "hits.lance", mode="overwrite")
        pq.write_table(table, file, row_group_size=paired.ROW_GROUP)
    return place


def main() -> int:
    chosen = paired.arguments("clickbench", __doc__, 1_000_000).parse_args()
    place = prepared(chosen.folder, chosen.rows)
    kinds = {
        "Parquet": paired.over_parquet(chosen.engine, place, ["hits"]),
        "Lance": paired.over_lance(chosen.engine, place),
    }
    numbered = {f"Q{number}": text for number, text in enumerate(queries())}
    return paired.compare(f"ClickBench, {chosen.rows:,} rows", numbered, kinds, chosen.repetitions)


if __name__ == "__main__":
    sys.exit(main())
