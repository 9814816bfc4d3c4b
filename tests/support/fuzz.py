"""Read damaged and random files with kernels that watch their own memory accesses (`make fuzz`).

``python fuzz.py KERNELS SECONDS [GROUP ...]`` reads each group of files for SECONDS with KERNELS, the
extension module as `-DLANCE_SANITIZE=ON` builds it. Fails if a sanitizer reports anything, if a file leads to
another error than one for bad files, or if the process dies; the files concerned are kept and named.
"""

from __future__ import annotations

import importlib.util
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SEED_GROUPS = ("leaf", "nested", "values", "forced", "packed", "blob", "2.0")
GROUPS = (*SEED_GROUPS, "random")
MEMORY_LIMIT = 3 << 30  # on top of the address space that the sanitizer itself reserves


def load_kernels(path: Path) -> None:
    """Have lance_engine use this extension module in place of its own."""
    spec = importlib.util.spec_from_file_location("lance_engine._kernels", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    module.set_cache_limit(0)  # recycled memory would hide accesses after its release


def limit_memory() -> None:
    status = Path("/proc/self/status").read_text()
    in_use = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmSize:")) << 10
    resource.setrlimit(resource.RLIMIT_AS, (in_use + MEMORY_LIMIT, in_use + MEMORY_LIMIT))


def read_seeds(folder: Path, until: float) -> int:
    """Damage after damage of all files of `folder`; the number of files read."""
    import pyarrow as pa
    from damage import damaged, outcome
    from native_files import NativeFile

    seeds = []
    for path in sorted(folder.glob("*.lance")):
        schema = pa.ipc.read_schema(pa.BufferReader(path.with_suffix(".schema").read_bytes()))
        seeds.append((path.stem, path.read_bytes(), schema))
    first = time.time_ns()  # other damage every time
    count = 0
    while time.monotonic() < until:
        for name, data, schema in seeds:
            copy = damaged(data, first + count)
            (folder / "last").write_bytes(copy)
            rows = NativeFile.in_memory(data, schema).rows
            problem = outcome(copy, folder / "damaged", schema, rows)
            if problem:
                (folder / f"found-{count}").write_bytes(copy)
                print(f"finding: {name}, found-{count}: {problem}", flush=True)
            count += 1
    return count


def read_random_files(folder: Path, until: float) -> int:
    """Random legal files, intact and damaged; the number of files read."""
    from corpus import difference
    from damage import damaged, outcome
    from hypothesis import HealthCheck, Phase, given, seed, settings
    from native_files import NativeFile, without_dictionaries
    from random_files import RandomFile, random_files

    count = 0

    def read(file: RandomFile) -> None:
        nonlocal count
        if time.monotonic() > until or not file.table.num_rows:
            return
        (folder / "last").write_bytes(file.data)
        expected = file.table.cast(
            file.table.schema.set(
                0, file.table.schema.field(0).with_type(without_dictionaries(file.table.schema.field(0).type))
            )
        )
        assert difference(NativeFile.in_memory(file.data, file.table.schema).table(), expected) == ""
        for _ in range(4):
            copy = damaged(file.data, time.time_ns())
            (folder / "last").write_bytes(copy)
            problem = outcome(copy, folder / "damaged", file.table.schema, file.table.num_rows)
            if problem:
                (folder / f"found-{count}").write_bytes(copy)
                print(f"finding: found-{count} from {file.notes}: {problem}", flush=True)
            count += 1

    while time.monotonic() < until:
        options = settings(
            max_examples=20,
            deadline=None,
            database=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        seed(time.time_ns())(options(given(random_files())(read)))()
    return count


def preloads() -> str:
    """The libraries that must be loaded first in a process that is not itself sanitized."""
    compiler = os.environ.get("CXX", "g++")
    paths = [
        subprocess.check_output([compiler, f"-print-file-name={name}"], text=True).strip()
        for name in ("libasan.so", "libstdc++.so")
    ]
    return " ".join(paths)


def fuzz(kernels: Path, group: str, seconds: float, folder: Path) -> bool:
    """Whether a group came through without findings."""
    environment = os.environ | {
        "LD_PRELOAD": preloads(),
        "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1:max_allocation_size_mb=3072",
        "UBSAN_OPTIONS": "print_stacktrace=1",
        "PYTHONPATH": os.pathsep.join(sys.path),
        "PYTHONMALLOC": "malloc",  # so that inputs, too, are watched
    }
    command = [sys.executable, __file__, "--read", str(kernels), str(seconds), group, str(folder)]
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=10 * seconds + 300, check=False
    )
    clean = done.returncode == 0 and "finding" not in done.stdout and "runtime error" not in done.stderr
    print(f"{group}: {done.stdout.strip().splitlines()[-1] if clean else 'FAILED'}", flush=True)
    if not clean:
        print(done.stdout[-5000:], done.stderr[-20_000:], f"kept in {folder}", sep="\n", flush=True)
    return clean


def main(kernels: Path, seconds: float, groups: list[str]) -> int:
    from seeds import SEEDS, SEEDS_2_0, write_seeds

    folder = Path(tempfile.mkdtemp(prefix="lance-fuzz-"))
    passed = []
    for group in groups or GROUPS:
        place = folder / group
        place.mkdir()
        if group == "2.0":
            write_seeds(place, SEEDS_2_0, version_2_0=True)
        else:
            write_seeds(place, [key for key in SEEDS if key[0] == group])
        passed.append(fuzz(kernels, group, seconds, place))
    return 0 if all(passed) else 1


def read(kernels: Path, seconds: float, group: str, folder: Path) -> None:
    load_kernels(kernels)
    limit_memory()
    until = time.monotonic() + seconds
    count = read_random_files(folder, until) if group == "random" else read_seeds(folder, until)
    print(f"{count} files")


if __name__ == "__main__":
    if sys.argv[1] == "--read":
        read(Path(sys.argv[2]), float(sys.argv[3]), sys.argv[4], Path(sys.argv[5]))
    else:
        sys.exit(main(Path(sys.argv[1]), float(sys.argv[2]), sys.argv[3:]))
