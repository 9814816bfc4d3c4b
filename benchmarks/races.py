"""Writers that upsert the same keys at the same time: duplicates, lost changes and errors are counted.

`make races` runs it for two to eight writers. Each upsert of ours adds 1 to the counter of some keys, or
inserts them with 1; pylance's merges insert keys that do not exist with 0. Afterwards, the counters must add
up to the number of upserts, and every key must be there once.
"""

from __future__ import annotations

import argparse
import multiprocessing
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any, Final

import pyarrow as pa

import lance_sql

#: Keys of the table, and keys that one statement changes.
KEYS: Final = 2_000
AT_ONCE: Final = 50
SCHEMA: Final = pa.schema([pa.field("id", pa.int64(), nullable=False), ("n", pa.int64())])

Upsert = Callable[[str, list[int]], Any]


def in_session(engine: str) -> Upsert:
    """Upserts in one session, with values in the text."""
    session: lance_sql.Session | None = None

    def upsert(path: str, keys: list[int]) -> None:
        nonlocal session
        if session is None:
            session = lance_sql.connect(Path(path).parent, engine=engine)
        values = ", ".join(f"({key}, 1)" for key in keys)
        session.execute(f"INSERT INTO t VALUES {values} ON CONFLICT (id) DO UPDATE SET n = t.n + excluded.n")

    return upsert


def in_python(path: str, keys: list[int]) -> None:
    """Upserts with `Dataset.merge`."""
    rows = pa.table({"id": keys, "n": [1] * len(keys)}, SCHEMA)
    merge = lance_sql.open(path).merge(rows, "id")
    merge.when_matched_update({"n": "target.n + source.n"}).when_not_matched_insert_all().execute()


def by_statement(path: str, keys: list[int]) -> None:
    """Upserts with MERGE INTO, in a session of their own."""
    values = ", ".join(f"({key}, 1)" for key in keys)
    with lance_sql.connect(Path(path).parent) as session:
        session.execute(
            f"MERGE INTO t USING (VALUES {values}) AS s(id, m) ON t.id = s.id "
            "WHEN MATCHED THEN UPDATE SET n = n + m WHEN NOT MATCHED THEN INSERT (id, n) VALUES (s.id, m)"
        )


def in_pylance(path: str, keys: list[int]) -> None:
    """Inserts of keys that do not exist, by the official implementation."""
    import lance

    rows = pa.table({"id": keys, "n": [0] * len(keys)}, SCHEMA)
    lance.dataset(path).merge_insert("id").when_not_matched_insert_all().execute(rows)


#: The kinds of writers, in the order in which they join; the value says whether they count.
WRITERS: Final[dict[str, tuple[Callable[[], Upsert], bool]]] = {
    "DuckDB session": (lambda: in_session("duckdb"), True),
    "Dataset.merge": (lambda: in_python, True),
    "pylance": (lambda: in_pylance, False),
    "DataFusion session": (lambda: in_session("datafusion"), True),
    "MERGE INTO": (lambda: by_statement, True),
}


def write(kind: str, number: int, path: str, statements: int, together: Any, results: Any) -> None:
    """One writer: its statements, run again after a conflict; puts what it did into the queue `results`."""
    upsert, counts = WRITERS[kind][0](), WRITERS[kind][1]
    random, errors = Random(number), Counter[str]()
    together.wait(300)
    for _ in range(statements):
        keys = random.sample(range(KEYS), AT_ONCE)
        while True:
            try:
                upsert(path, keys)
                break
            except Exception as error:
                text = f"{type(error).__name__}: {error}"
                # pylance gives up after 30 seconds, with an error of its own.
                is_conflict = "conflict" in text.lower() or "Too many concurrent writers" in text
                errors["conflicts that the caller retried" if is_conflict else text[:300]] += 1
                if not is_conflict:
                    break
    results.put((kind, statements * AT_ONCE if counts else 0, dict(errors)))


def race(writers: int, upserts: int, folder: Path) -> dict[str, Any]:
    """Run a number of writers; what the table looks like afterwards."""
    path = str(folder / "t.lance")
    lance_sql.write(SCHEMA.empty_table(), path, primary_key=["id"])
    context = multiprocessing.get_context("spawn")
    together, results = context.Barrier(writers + 1), context.Queue()
    statements = upserts // AT_ONCE // writers
    kinds = list(WRITERS)
    processes = [
        context.Process(
            target=write, args=(kinds[number % len(kinds)], number, path, statements, together, results)
        )
        for number in range(writers)
    ]
    for process in processes:
        process.start()
    together.wait(300)
    begin = time.monotonic()
    done = [results.get() for _ in processes]
    seconds = time.monotonic() - begin
    for process in processes:
        process.join()
    rows = lance_sql.open(path).to_table()
    counted = sum(count for _, count, _ in done)
    distinct = len(rows["id"].unique())
    errors: Counter[str] = Counter()
    for _, _, found in done:
        errors.update(found)
    return {
        "writers": writers,
        "upserts": writers * statements * AT_ONCE,
        "seconds": round(seconds, 1),
        "duplicates": rows.num_rows - distinct,
        "lost": counted - sum(rows["n"].to_pylist()),
        "versions": lance_sql.open(path).version,
        "retried by the caller": errors.pop("conflicts that the caller retried", 0),
        "errors": dict(errors),
    }


def main() -> None:
    """Print a row of the table for each number of writers; exit with an error after a duplicate or a loss."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("writers", type=int, nargs="*", default=[2, 4, 8])
    parser.add_argument("--upserts", type=int, default=10_000)
    given = parser.parse_args()
    wrong = False
    for writers in given.writers:
        with tempfile.TemporaryDirectory() as folder:
            found = race(writers, given.upserts, Path(folder))
        print("| " + " | ".join(str(value) for value in found.values()) + " |", flush=True)
        wrong = wrong or bool(found["duplicates"] or found["lost"] or found["errors"])
    if wrong:
        raise SystemExit("A key is there twice, a change is lost, or a writer failed")


if __name__ == "__main__":
    main()
