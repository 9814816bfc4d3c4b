"""Whole datasets with one changed file, and all operations on a dataset."""

from __future__ import annotations

import datetime
import json
import os
import random
import shutil
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import lance
import numpy as np
import pyarrow as pa
from fuzz_mutation import mutate_bytes, mutate_message
from lance_engine.errors import LanceError
from lance_engine.format.pb import table_pb2
from vector_tables import clustered, vector_array

import lance_sql
from lance_sql.full_text import Match, Phrase
from lance_sql.report.page import report_page

ROWS = 120
QUERY = clustered(1, 8, seed=3)[0]
#: Which files change: the small ones that say what the others are, as often as data.
FOLDERS = ("_versions", "_refs", "_transactions", "_deletions", "_indices", "data", "tree", "")


def table(first: int = 0, rows: int = ROWS) -> pa.Table:
    numbers = np.arange(first, first + rows)
    return pa.table(
        {
            "a": numbers,
            "s": [None if number % 11 == 5 else f"text {number % 7}" for number in numbers],
            "f": pa.array(numbers * 0.5, pa.float32()),
            "l": [list(range(number % 4)) for number in numbers],
            "r": [{"x": int(number % 3), "y": str(number)} for number in numbers],
            "v": vector_array(clustered(rows, 8, seed=first)),
        }
    )


def ours(place: Path, **options: Any) -> None:
    dataset = lance_sql.write(table(), place, max_rows_per_file=50, **options)
    dataset = dataset.create_index("a").create_index("s", "bitmap").create_index("f", "zonemap")
    dataset = dataset.delete("a = 7 OR a = 60").update({"f": "f + 1"}, "a < 5")
    dataset.tags.create("t")
    dataset.branches.create("b")
    lance_sql.open(place, branch="b").delete("a = 20")
    dataset.update_config({"k": "v"})


def ours_plain(place: Path, **options: Any) -> None:
    dataset = lance_sql.write(table().drop_columns(["v"]), place, max_rows_per_file=50, **options)
    dataset.delete("a = 7")
    dataset.tags.create("t")
    dataset.branches.create("b")


def ours_with_vectors(place: Path, kind: str) -> None:
    dataset = lance_sql.write(table(rows=300).select(["a", "v"]), place)
    options = {"num_sub_vectors": 2} if kind.endswith("PQ") else {}
    dataset = dataset.create_index("v", kind, num_partitions=2, **options)
    dataset.tags.create("t")
    dataset.branches.create("b")
    lance_sql.write(table(300, 20).select(["a", "v"]), place, "append")


def theirs(place: Path, **options: Any) -> None:
    dataset = lance.write_dataset(table(), place, max_rows_per_file=50, **options)
    for column, kind in (("a", "BTREE"), ("s", "BITMAP"), ("f", "ZONEMAP"), ("s", "BLOOMFILTER")):
        dataset.create_scalar_index(column, kind, name=f"{column}_{kind}")
    dataset.delete("a = 7 OR a = 60")
    dataset.tags.create("t", dataset.version)
    dataset.create_branch("b")
    lance.write_dataset(table(ROWS, 10), place, mode="append")


def theirs_with_vectors(place: Path, kind: str) -> None:
    dataset = lance.write_dataset(table(rows=300).select(["a", "v"]), place)
    options = {"num_sub_vectors": 2} if "PQ" in kind else {}
    dataset.create_index("v", kind, num_partitions=2, **options)
    dataset.tags.create("t", dataset.version)
    dataset.create_branch("b")


def texts(rows: int, first: int = 0) -> pa.Table:
    words = ("lance", "format", "query", "spark", "index", "page", "row")
    sentences = [
        " ".join(words[(number * step + step) % 7] for step in range(1, 2 + number % 9))
        for number in range(first, first + rows)
    ]
    return pa.table({"a": np.arange(first, first + rows), "s": sentences})


def ours_with_words(place: Path) -> None:
    dataset = lance_sql.write(texts(300), place).create_index("s", "inverted", with_position=True)
    dataset.tags.create("t")
    dataset.branches.create("b")
    lance_sql.write(texts(20, 300), place, "append")


def theirs_with_words(place: Path, **options: Any) -> None:
    dataset = lance.write_dataset(texts(300), place)
    dataset.create_scalar_index("s", "INVERTED", **options)
    dataset.tags.create("t", dataset.version)
    dataset.create_branch("b")


SOUND: dict[str, Callable[[Path], object]] = {
    "ours-2.0": lambda place: ours(place, data_storage_version="2.0"),
    "ours-2.1": lambda place: ours(place, data_storage_version="2.1"),
    "ours-2.2": lambda place: ours(place, data_storage_version="2.2", stable_row_ids=True),
    "ours-plain": lambda place: ours_plain(place, stable_row_ids=True),
    "ours-flat": lambda place: ours_with_vectors(place, "IVF_FLAT"),
    "ours-pq": lambda place: ours_with_vectors(place, "IVF_PQ"),
    "ours-hnsw": lambda place: ours_with_vectors(place, "IVF_HNSW_SQ"),
    "theirs-0.1": lambda place: theirs(place, data_storage_version="legacy"),
    "theirs-2.0": lambda place: theirs(place, data_storage_version="2.0"),
    "theirs-2.1": lambda place: theirs(place, data_storage_version="2.1"),
    "theirs-2.2": lambda place: theirs(place, data_storage_version="2.2", enable_stable_row_ids=True),
    "theirs-flat": lambda place: theirs_with_vectors(place, "IVF_FLAT"),
    "theirs-pq": lambda place: theirs_with_vectors(place, "IVF_PQ"),
    "theirs-sq": lambda place: theirs_with_vectors(place, "IVF_SQ"),
    "theirs-rq": lambda place: theirs_with_vectors(place, "IVF_RQ"),
    "theirs-hnsw-pq": lambda place: theirs_with_vectors(place, "IVF_HNSW_PQ"),
    "ours-words": ours_with_words,
    "theirs-words": lambda place: theirs_with_words(place, with_position=True),
    "theirs-words-plain": theirs_with_words,
    "theirs-hnsw-sq": lambda place: theirs_with_vectors(place, "IVF_HNSW_SQ"),
}


def link_copy(sound: Path, copy: Path) -> None:
    """A cheap copy: no file is changed in place, because `mutate` writes new files."""
    copy.mkdir()
    with os.scandir(sound) as entries:
        for entry in entries:
            if entry.is_dir():
                link_copy(Path(entry.path), copy / entry.name)
            else:
                os.link(entry.path, copy / entry.name)


def files_of(place: Path) -> list[Path]:
    """The files of a dataset in the order in which they were written, as their names are random."""
    files = (path for path in place.rglob("*") if path.is_file())
    return sorted(files, key=lambda path: (path.stat().st_mtime_ns, path.suffix))


def mutate(chance: random.Random, place: Path) -> str:
    """Change, cut, swap or remove one file; returns which."""
    files = files_of(place)
    wanted = chance.choice(FOLDERS)
    chosen = [path for path in files if path.relative_to(place).parts[0] == wanted] or files
    path = chance.choice(chosen)
    content = path.read_bytes()
    path.unlink()
    kind = chance.random()
    if kind < 0.04:
        return f"{path.relative_to(place)} removed"
    if kind < 0.08:
        content = chance.choice([other for other in files if other != path]).read_bytes()
    elif path.suffix == ".manifest" and kind < 0.6:
        content = changed_manifest(chance, content)
    elif path.suffix == ".txn" and kind < 0.6:
        content = mutate_message(chance, content, table_pb2.Transaction, content)
    elif path.suffix == ".json" and kind < 0.6:
        content = changed_json(chance, content)
    elif kind < 0.12:
        content = content[: chance.randrange(len(content) + 1)]
    else:
        # Footers and the messages before them decide how the rest is read.
        tail = max(0, len(content) - chance.choice([64, 512, 4096, len(content)]))
        for _ in range(chance.choice([1, 1, 2, 8])):
            content = content[:tail] + mutate_bytes(chance, content[tail:], content)
    path.write_bytes(content)
    return f"{path.relative_to(place)} changed"


def changed_manifest(chance: random.Random, content: bytes) -> bytes:
    """A manifest in which one field of the message is another; lengths and the footer fit."""
    start = int.from_bytes(content[-16:-8], "little")
    length = int.from_bytes(content[start : start + 4], "little")
    message = content[start + 4 : start + 4 + length]
    for _ in range(chance.choice([1, 1, 2])):
        message = mutate_message(chance, message, table_pb2.Manifest, message)
    return content[:start] + len(message).to_bytes(4, "little") + message + content[start + 4 + length :]


JSON_VALUES = [None, True, -1, 0, 1, 3, 2**40, 2**64, 1e300, "", "x", "../x", "\0", "\ud800", [], [[]], {}]


def changed_json(chance: random.Random, content: bytes) -> bytes:
    try:
        value = json.loads(content)
    except ValueError:
        return mutate_bytes(chance, content)
    if not isinstance(value, dict) or not value or chance.random() < 0.1:
        return json.dumps(chance.choice(JSON_VALUES)).encode()
    value[chance.choice([*value, "x"])] = chance.choice(JSON_VALUES)
    return json.dumps(value).encode()


def reads(uri: str) -> dict[str, Callable[[], object]]:
    """The operations that do not change a dataset."""

    def opened(**options: Any) -> lance_sql.Dataset:
        return lance_sql.open(uri, **options)

    def searched(**options: Any) -> object:
        dataset = opened()
        return dataset.nearest("v", QUERY, 5, columns=["a"], **options) if "v" in dataset.schema.names else 0

    return {
        "scan": lambda: opened().scan().to_table(),
        "filter": lambda: opened().scan(filter="a > 10 AND a < 90").to_table(),
        "filters": lambda: opened().scan(filter="s = 'text 3' OR f < 3.5", columns=["a", "s"]).to_table(),
        "ids": lambda: opened().scan(columns=["_rowid", "_rowaddr", "a"], limit=9, offset=40).to_table(),
        "take": lambda: opened().take([0, 3, 1 << 32, 70]),
        "count": lambda: opened().count_rows(),
        "counted": lambda: opened().count_rows("a = 9 OR s IS NULL"),
        "first": lambda: opened(version=1).scan().to_table(),
        "second": lambda: opened(version=2).count_rows("a > 3"),
        "tag": lambda: opened(tag="t").scan().to_table(),
        "branch": lambda: opened(branch="b").count_rows("a < 9"),
        "tags": lambda: [opened().tags.list(), opened().branches.list()],
        "nearest": searched,
        "nearest filtered": lambda: searched(filter="a > 10", nprobes=2),
        "words": lambda: opened().search("lance query", "s", k=5),
        "phrase": lambda: opened().search(Phrase("format row"), "s", filter="a > 10"),
        "fuzzy": lambda: opened().search(Match("forma", fuzziness=1), "s", k=None),
        "min_max": lambda: [opened().min_max("a"), opened().min_max("s")],
        "splits": lambda: [opened().scan(splits=[split]).to_table() for split in opened().splits(3)],
        "verify": lambda: opened().verify(values=True),
        "health": lambda: opened().health(),
        "versions": lambda: opened().inspect.versions(),
        "transactions": lambda: opened().inspect.transactions(),
        "refs": lambda: opened().inspect.refs(),
        "files": lambda: [opened().inspect.files(), opened().inspect.fragments()],
        "deletions": lambda: opened().inspect.deletions(),
        "pages": lambda: [opened().inspect.columns(), opened().inspect.pages()],
        "zones": lambda: [opened().inspect.statistics(), opened().inspect.zones()],
        "indices": lambda: opened().inspect.indices(),
        "repr": lambda: [repr(opened()), repr(opened().tags), opened()._repr_html_()],
        "duckdb": lambda: lance_sql.sql(f"SELECT a % 3, count(*) FROM '{uri}' GROUP BY 1").fetchall(),
        "duckdb filter": lambda: lance_sql.sql(f"SELECT * FROM '{uri}' WHERE a BETWEEN 3 AND 60").arrow(),
        "datafusion": lambda: selected(uri, "SELECT a % 3, count(*) FROM {} GROUP BY 1", "datafusion"),
        "datafusion filter": lambda: selected(uri, "SELECT * FROM {} WHERE s = 'text 3'", "datafusion"),
        "ways": lambda: same_rows(uri, by_engines=True),
        LAST: lambda: same_rows(uri),
        "report": lambda: report_page(opened()),
    }


def selected(uri: str, query: str, engine: str) -> pa.Table:
    return lance_sql.sql(query.format(f"'{uri}'"), engine=engine).arrow()


#: What follows the other uses of a dataset.
LAST = "alike"
#: Rows that different ways of reading are compared for.
COMPARED = 2000


def same_rows(uri: str, *, by_engines: bool = False) -> None:
    """Whatever the rows of a damaged dataset are, all ways of reading give the same, or an error."""
    dataset = lance_sql.open(uri)
    names = [name for name in dataset.schema.names if name in ("a", "s", "f", "l", "r")]
    rows = dataset.scan([*names, "_rowid"], limit=COMPARED).to_table()
    ids = rows["_rowid"].to_pylist()
    rows = rows.select(names)
    query = f"SELECT {', '.join(names)} FROM {{}} LIMIT {COMPARED}"
    ways: dict[str, Callable[[], pa.Table]] = {
        "small batches": lambda: dataset.scan(names, limit=COMPARED, batch_size=7).to_table(),
        "take": lambda: dataset.take(ids, names),
        "positions": lambda: dataset.take_positions(range(len(ids)), names),
        "splits": lambda: pa.concat_tables(
            [rows[:0], *(dataset.scan(names, splits=[split]).to_table() for split in dataset.splits(3))]
        ),
    }
    if by_engines:
        ways["duckdb"] = lambda: selected(uri, query, "duckdb")
        ways["datafusion"] = lambda: selected(uri, query, "datafusion")
    try:
        expected = shown_rows(rows)
    except UnicodeDecodeError:
        return  # the bytes of a text were changed, and Python cannot show them
    for way, read in ways.items():
        with suppress(LanceError):
            found = shown_rows(read())
            assert found == expected, f"{way} gives {len(found)} rows of {len(expected)}, or others"


def shown_rows(rows: pa.Table) -> list[str]:
    return sorted(map(str, zip(*(column.to_pylist() for column in rows.columns), strict=True)))


def writes(uri: str) -> dict[str, Callable[[], object]]:
    """The operations that change a dataset."""

    def opened(**options: Any) -> lance_sql.Dataset:
        return lance_sql.open(uri, **options)

    def appended() -> object:
        dataset = opened()
        return lance_sql.write(dataset.scan(limit=5).to_table(), uri, "append")

    def merged() -> object:
        source = pa.table({"a": [1, 900], "s": ["m", "n"]})
        return opened().merge(source, on="a").when_matched_update_all().execute()

    return {
        "append": appended,
        "overwrite": lambda: lance_sql.write(pa.table({"z": [1]}), uri, "overwrite"),
        "delete": lambda: opened().delete("a = 3"),
        "update": lambda: opened().update({"a": "a + 1"}, "a < 5"),
        "merge": merged,
        "compact": lambda: opened().compact(),
        "optimize": lambda: opened().optimize_indices().compact(),
        "cleanup": lambda: opened().cleanup(datetime.timedelta(0), delete_unverified=True),
        "create_index": lambda: opened().create_index("a", replace=True, name="a_BTREE"),
        "drop_index": lambda: opened().drop_index("v_idx"),
        "add_columns": lambda: opened().add_columns({"n": "a + 1"}),
        "drop_columns": lambda: opened().drop_columns(["a"]),
        "alter": lambda: opened().alter_column("f", type=pa.float64()),
        "restore": lambda: opened().restore(1),
        "tag changes": lambda: [opened().tags.create("u"), opened().tags.update("t", 1)],
        "tag deleted": lambda: opened().tags.delete("t"),
        "branch changes": lambda: [opened().branches.create("c"), opened().branches.delete("b")],
        "clone": lambda: opened().shallow_clone(uri + ".clone").scan().to_table(),
        "config": lambda: opened().update_config({"k": None, "m": "n"}),
        "sql delete": lambda: lance_sql.sql(f"DELETE FROM '{uri}' WHERE a = 11").fetchall(),
        "sql vacuum": lambda: lance_sql.sql(f"VACUUM '{uri}'").fetchall(),
    }


#: The uses of the dataset at a location, by name.
Uses = Callable[[str], dict[str, Callable[[], object]]]


class Trouble(NamedTuple):
    """An unexpected result, with the mutant, the dataset and the operation."""

    seed: int
    dataset: str
    change: str
    use: str
    error: str


#: Seconds of the processors that one use of a small dataset may take.
LATE = 20
#: Uses that take ten times as long as most, and how much less often they are chosen.
LONG = frozenset(["report", "verify", "ways", "datafusion", "datafusion filter", "health"])
LONG |= {"duckdb", "duckdb filter", "sql delete", "sql vacuum", "optimize", "compact", "merge"}
_RARE = 10


def try_mutant(
    sound: Path,
    place: Path,
    seed: int,
    names: Sequence[str],
    uses: int,
    change_file: Callable[[random.Random, Path], str] = mutate,
    uses_of: tuple[Uses, Uses] | None = None,
) -> Iterator[Trouble]:
    """Change a copy of one of the sound datasets `names`, put it to some `uses`, and read it.

    If they are several, the last one is a change of the dataset. `uses_of` makes the reads and the changes of
    a location.
    """
    chance = random.Random(seed)
    name = chance.choice(list(names))
    copy = place / f"{seed}.lance"
    link_copy(sound / name, copy)
    change = change_file(chance, copy)
    readers, writers = (of(str(copy)) for of in uses_of or (reads, writes))
    # Those that take long have their turn less often: more datasets are tried in the same time.
    keys = {use: chance.random() ** (_RARE if use in LONG else 1) for use in sorted([*readers, *writers])}
    chosen = sorted(readers, key=keys.__getitem__, reverse=True)[: max(1, uses - 1)]
    if uses > 1:
        chosen.append(max(writers, key=keys.__getitem__))
    chosen.append(LAST if LAST in readers else next(iter(readers)))
    try:
        for use in chosen:
            _now[:] = [seed, name, change, use]
            begin = time.process_time()
            try:
                (readers | writers)[use]()
            except LanceError as error:
                str(error).encode()
            except Exception as error:
                where = traceback.extract_tb(error.__traceback__)[-1]
                told = f"{type(error).__name__}: {str(error)[:300]!r} ({where.filename}:{where.lineno})"
                yield Trouble(seed, name, change, use, told)
            if (took := time.process_time() - begin) > LATE:
                yield Trouble(seed, name, change, use, f"took {took:.0f} s")
    finally:
        shutil.rmtree(copy, ignore_errors=True)
        shutil.rmtree(f"{copy}.clone", ignore_errors=True)


#: What is under way: for what other threads and finalizers have to say.
_now: list[object] = []


def under_way() -> str:
    return str(_now)
