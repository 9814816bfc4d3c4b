"""Reads changed files with kernels that watch their own memory accesses (`make fuzz`).

``python fuzz.py [--jobs N] [--keep] KERNELS SECONDS [TARGET ...]`` reads changed inputs of every target, or
of those whose names begin with one of TARGET, for SECONDS in all, N targets at once. KERNELS is the module
that `-DLANCE_SANITIZE=ON` builds. `--keep` adds inputs that reach new code to the corpus and drops others.
A target fails where a sanitizer reports anything, an input leads to another error than one for bad files,
takes too long or too much memory, or the process dies; the inputs concerned are kept and named.
"""

from __future__ import annotations

import argparse
import functools
import importlib.util
import os
import pickle
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fuzz_loop import Target

# At least this long each.
LEAST_SECONDS = 10
# One allocation may ask for no more: a few thousand times the size of an input, as compressed data may.
MOST_ALLOCATED_MIB = 1024

# What targets share with the tests is in tests/support.
SUPPORT = Path(__file__).parents[1] / "support"


def load_kernels(path: Path) -> None:
    """Make lance_engine use this extension module instead of its own."""
    spec = importlib.util.spec_from_file_location("lance_engine._kernels", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)


def fetch_exactly() -> None:
    """Fetch each buffer by itself: an access behind its end is not one to the buffer that comes next."""
    from lance_engine.file import reader
    from lance_engine.format.container import FOOTER_SIZE
    from lance_engine.io.coalesce import coalesce

    reader.TAIL_SIZE = FOOTER_SIZE
    reader.coalesce = functools.partial(coalesce, max_gap=0)


def preloads() -> str:
    """The libraries that must be loaded first in a process that is not itself sanitized."""
    compiler = os.environ.get("CXX", "g++")
    paths = [
        subprocess.check_output([compiler, f"-print-file-name={name}"], text=True).strip()
        for name in ("libasan.so", "libstdc++.so")
    ]
    return " ".join(paths)


def targets() -> dict[str, Target]:
    sys.path.append(str(SUPPORT))
    import fuzz_decoders
    import fuzz_json
    import fuzz_layouts
    import fuzz_parsers
    import fuzz_random
    import fuzz_searches
    import fuzz_tables
    import fuzz_vectors
    import fuzz_words

    searching = (fuzz_searches, fuzz_vectors, fuzz_words)
    modules = (fuzz_decoders, fuzz_layouts, fuzz_tables, *searching, fuzz_json, fuzz_parsers, fuzz_random)
    return {target.name: target for module in modules for target in module.TARGETS}


def run(kernels: Path, seconds: float, target: Target, folder: Path, keeps: bool) -> tuple[bool, str]:
    """Whether a target had no findings, and the message about it."""
    folder.mkdir()
    # Made here, where it takes a tenth of the time that it takes with sanitizers.
    (folder / "seeds").write_bytes(pickle.dumps(list(target.seeds())))
    environment = os.environ | {
        "LD_PRELOAD": preloads(),
        "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1:quarantine_size_mb=16"
        f":max_allocation_size_mb={MOST_ALLOCATED_MIB}",
        "UBSAN_OPTIONS": "print_stacktrace=1",
        "PYTHONPATH": os.pathsep.join(sys.path),
        "PYTHONMALLOC": "malloc",  # so that inputs, too, are watched
    }
    command = [sys.executable, __file__, "--read", str(kernels), str(seconds), target.name, str(folder)]
    if keeps:
        command.append("--keep")
    begin = time.monotonic()
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=10 * seconds + 900, check=False
    )
    took = f"{time.monotonic() - begin:.0f} s"
    if (
        done.returncode == 0
        and "finding" not in done.stdout.replace(" 0 findings", "")
        and "runtime error" not in done.stderr
    ):
        return True, f"{target.name}: {took}, {done.stdout.strip().splitlines()[-1]}"
    late = done.returncode in (-signal.SIGALRM, -signal.SIGPROF)
    how = "takes too long" if late else f"exit code {done.returncode}"
    return False, "\n".join(
        [
            f"{target.name}: FAILED ({how}) after {took}, inputs in {folder}",
            done.stdout[-5000:],
            done.stderr[-20_000:],
        ]
    )


def main(kernels: Path, seconds: float, wanted: list[str], jobs: int, keeps: bool) -> int:
    every = targets()
    chosen = [every[name] for name in every if not wanted or name.startswith(tuple(wanted))]
    if not chosen:
        names = ", ".join(every)
        sys.exit(f"No target begins with {' or '.join(map(repr, wanted))}. There are: {names}")
    each = max(LEAST_SECONDS, seconds / len(chosen))
    folder = Path(tempfile.mkdtemp(prefix="lance-fuzz-"))
    failed = 0
    with ThreadPoolExecutor(jobs) as pool:
        places = [folder / str(number) for number in range(len(chosen))]
        runs = pool.map(lambda target, place: run(kernels, each, target, place, keeps), chosen, places)
        for passed, summary in runs:
            print(summary, flush=True)
            failed += not passed
    print(f"{len(chosen)} targets of {each:.0f} s, {failed} failed", flush=True)
    return 1 if failed else 0


def read(kernels: Path, seconds: float, name: str, folder: Path, keeps: bool) -> None:
    """Fuzz one target in this process, which findings may end."""
    load_kernels(kernels)
    from fuzz_corpus import corpus, keep
    from fuzz_coverage import KernelCoverage, LineCoverage
    from fuzz_loop import fuzz

    fetch_exactly()
    target = targets()[name]
    seeds = pickle.loads((folder / "seeds").read_bytes())

    def coverage() -> KernelCoverage | LineCoverage:
        return KernelCoverage(kernels) if target.native else LineCoverage()

    summary, found = fuzz(target, [*seeds, *corpus(target)], seconds, coverage(), folder)
    if keeps:
        summary += f", {keep(target, seeds, found, coverage())} in the corpus"
    print(summary)


if __name__ == "__main__":
    if sys.argv[1] == "--read":
        read(Path(sys.argv[2]), float(sys.argv[3]), sys.argv[4], Path(sys.argv[5]), "--keep" in sys.argv)
    else:
        parser = argparse.ArgumentParser(
            description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
        )
        parser.add_argument("--jobs", type=int, default=1)
        parser.add_argument("--keep", action="store_true")
        parser.add_argument("kernels", type=Path)
        parser.add_argument("seconds", type=float)
        parser.add_argument("targets", nargs="*")
        given = parser.parse_args()
        sys.exit(main(given.kernels, given.seconds, given.targets, given.jobs, given.keep))
