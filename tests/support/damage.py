"""Read damaged copies of data files in a process of its own, where a crash or a hang does no harm.

``python damage.py FOLDER FIRST COUNT`` damages every ``*.lance`` file of FOLDER (its Arrow schema in
``*.schema``) in COUNT ways, numbered from FIRST, reads what is left, and prints a line for each unwanted
outcome. Wanted are an intact table or one of the two errors for bad files.
"""

from __future__ import annotations

import resource
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
from lance_engine import kernels
from lance_engine.errors import CorruptFileError, UnsupportedFeatureError
from native_files import NativeFile

MEMORY_LIMIT = 3 << 30


def damaged(data: bytes, number: int) -> bytes:
    """The copy of a file damaged in way `number`; half of the ways aim at the metadata at the end."""
    rng = np.random.default_rng([number, len(data)])
    copy = bytearray(data)
    metadata = min(int.from_bytes(data[-40:-32], "little"), max(len(data) - 1, 0))
    kind = rng.choice(
        ["bit", "byte", "bits", "word", "zeros", "swap", "cut"], p=[0.3, 0.2, 0.1, 0.15, 0.1, 0.1, 0.05]
    )
    if kind == "cut":
        return bytes(copy[: rng.integers(0, len(copy))])
    for _ in range(3 if kind == "bits" else 1):
        aim = rng.random()
        if aim < 0.5:
            at = int(rng.integers(metadata, len(copy)))
        elif aim < 0.8:  # the start of a buffer: chunk words, chunk headers, control words
            at = int(rng.integers(0, max(metadata // 64, 1))) * 64 + int(rng.integers(0, 24))
        else:
            at = int(rng.integers(0, len(copy)))
        at = min(at, len(copy) - 1)
        if kind in ("bit", "bits"):
            copy[at] ^= 1 << int(rng.integers(0, 8))
        elif kind == "byte":
            copy[at] = int(rng.choice([0, 1, 127, 128, 255, rng.integers(0, 256)]))
        elif kind == "word":
            size = int(rng.choice([2, 4, 8]))
            value = int(rng.choice([0, 1, 2**15, 2**31 - 1, 2**32 - 1, 2**62, 2**63])) % (1 << 8 * size)
            copy[at : at + size] = value.to_bytes(size, "little")
        elif kind == "zeros":
            size = int(rng.integers(1, 40))
            copy[at : at + size] = bytes(len(copy[at : at + size]))
        else:
            other = int(rng.integers(0, len(copy)))
            piece = copy[other : other + 16]
            copy[at : at + len(piece)] = piece
    return bytes(copy)


def outcome(data: bytes, path: Path, schema: pa.Schema, rows: int) -> str:
    """The outcome of reading the file, or nothing if it is allowed."""
    for mapped in (False, True):
        if mapped:
            path.write_bytes(data)
        try:
            file = NativeFile.mapped(path, schema) if mapped else NativeFile.in_memory(data, schema)
            if file.rows > 100 * rows:
                continue  # a file may claim more constant rows than any test wants to see
            tables = [file.table()] if file.rows else []
            if file.rows > 2:
                middle = file.rows // 2
                tables += [file.range(middle, file.rows - 1), file.rows_at([0, middle, file.rows - 1])]
            for table in tables:
                check_structure(table)
        except kernels.BatchTooLargeError:
            continue  # which asks for fewer rows
        except (CorruptFileError, UnsupportedFeatureError) as error:
            if "path" not in error.place or not error.message:
                return f"error without path: {error}"
        except BaseException as error:
            return f"{type(error).__name__}: {error}"
    return ""


def check_structure(table: pa.Table) -> None:
    """Changed values cannot be detected, but offsets and lengths must be valid."""
    try:
        table.validate(full=True)
    except pa.ArrowInvalid as error:
        if "UTF8" not in str(error) and "decimal" not in str(error).lower() and "date64" not in str(error):
            raise


def main(folder: Path, first: int, count: int) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_LIMIT, MEMORY_LIMIT))
    for source in sorted(folder.glob("*.lance")):
        data = source.read_bytes()
        with pa.OSFile(str(source.with_suffix(".schema"))) as stream:
            schema = pa.ipc.read_schema(stream)
        rows = NativeFile.in_memory(data, schema).rows
        for number in range(first, first + count):
            (folder / "current").write_text(f"{source.stem} {number}")
            problem = outcome(damaged(data, number), folder / "damaged", schema, rows)
            if problem:
                print(f"{source.stem}, damage {number}: {problem}", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
