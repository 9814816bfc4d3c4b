"""Whole datasets with changed files, put to every use in processes that are watched (`make mutants`).

``python fuzz_datasets.py MUTANTS [--first SEED] [--jobs N] [--uses N]``: as many datasets with one changed
file each, own and the official writer's, with every kind of index, tags and branches. A process that dies
of a signal, a use that takes longer than LATE seconds or more than MOST_MEMORY, an error that is not a
`LanceError`, and whatever a finalizer or a thread complains of is a finding, told with its seed. Names of
files are random, so the sound datasets are kept then: ``1 --first SEED --sound FOLDER`` repeats it.
"""

from __future__ import annotations

import argparse
import faulthandler
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

SUPPORT = Path(__file__).parents[1] / "support"
LATE = 60
MOST_MEMORY = 3 << 30
BLOCK = 1000


def work(sound: Path, place: Path, first: int, count: int, uses: int, names: list[str]) -> None:
    """Try mutants in this process; prints each begun block, and findings as JSON."""
    sys.path.append(str(SUPPORT))
    import whole_datasets

    def tell(kind: str, **facts: object) -> None:
        print(json.dumps({"kind": kind, **facts}), flush=True)

    def complain(error: object) -> None:
        tell("finding", error=f"complaint: {error}", at=whole_datasets.under_way())

    faulthandler.enable()
    sys.unraisablehook = lambda told: complain(f"{told.exc_value!r} in {told.object!r}")
    threading.excepthook = lambda told: complain(f"{told.exc_value!r} in thread {told.thread}")
    for seed in range(first, first + count):
        (place / "seed").write_text(str(seed))
        faulthandler.dump_traceback_later(LATE, exit=True)
        for trouble in whole_datasets.try_mutant(sound, place, seed, names, uses):
            tell("finding", **trouble._asdict())
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
        if peak > MOST_MEMORY:
            tell("finding", error=f"memory: {peak >> 20} MiB", at=whole_datasets.under_way())
            faulthandler.cancel_dump_traceback_later()
            sys.exit(3)
    faulthandler.cancel_dump_traceback_later()
    tell("done", peak=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10)


def block(sound: Path, first: int, count: int, uses: int, names: list[str]) -> list[str]:
    """What was found among `count` mutants; a process that dies is replaced by one that goes on behind."""
    found: list[str] = []
    seed, end = first, first + count
    while seed < end:
        with tempfile.TemporaryDirectory(prefix="mutants-", dir=sound.parent) as folder:
            command = [sys.executable, "-Walways", __file__, "--work", str(sound), folder]
            done = subprocess.run(
                [*command, str(seed), str(end - seed), str(uses), ",".join(names)],
                capture_output=True,
                text=True,
                check=False,
            )
            lines = done.stdout.splitlines()
            found += [line for line in lines if '"finding"' in line]
            if done.returncode == 0:
                break
            last = int(Path(folder, "seed").read_text() or seed) if Path(folder, "seed").exists() else seed
            how = "hang" if "Timeout" in done.stderr else f"exit code {done.returncode}"
            if done.returncode != 3:
                found.append(
                    json.dumps({"kind": "finding", "error": how, "seed": last, "err": done.stderr[-3000:]})
                )
            seed = last + 1
    return found


def main(mutants: int, first: int, jobs: int, uses: int, wanted: list[str], kept: Path | None) -> int:
    sys.path.append(str(SUPPORT))
    import whole_datasets

    names = [name for name in whole_datasets.SOUND if not wanted or name.startswith(tuple(wanted))]
    sound = kept or sound_datasets(names)
    found = done = 0
    begin = time.monotonic()
    starts = range(first, first + mutants, BLOCK)
    sizes = [min(BLOCK, first + mutants - start) for start in starts]
    with ThreadPoolExecutor(jobs) as pool:
        runs = pool.map(lambda start, size: block(sound, start, size, uses, names), starts, sizes)
        for size, findings in zip(sizes, runs, strict=True):
            done, found = done + size, found + len(findings)
            print(*findings, sep="\n", end="\n" if findings else "")
            took = time.monotonic() - begin
            print(f"{done} mutants, {uses} uses each, {took:.0f} s, {found} findings", flush=True)
    if found:
        print(f"the sound datasets are in {sound}")
        return 1
    if kept is None:
        shutil.rmtree(sound.parent)
    return 0


def sound_datasets(names: list[str]) -> Path:
    """A folder with the datasets `names`, in memory unless another place was chosen."""
    import whole_datasets

    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    memory = os.environ.get("TMPDIR", memory)
    folder = Path(tempfile.mkdtemp(prefix="lance-datasets-", dir=memory), "sound")
    folder.mkdir()
    for name in names:
        whole_datasets.SOUND[name](folder / name)
    return folder


if __name__ == "__main__":
    if sys.argv[1] == "--work":
        sound, place, *numbers, datasets = sys.argv[2:]
        work(Path(sound), Path(place), *map(int, numbers), datasets.split(","))  # type: ignore[arg-type]
    else:
        parser = argparse.ArgumentParser(
            description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
        )
        parser.add_argument("mutants", type=int)
        parser.add_argument("--first", type=int, default=0)
        parser.add_argument("--jobs", type=int, default=2)
        parser.add_argument(
            "--uses", type=int, default=3, help="how many of each mutant, the last one a change"
        )
        parser.add_argument("--only", nargs="*", default=[], help="datasets whose names begin with these")
        parser.add_argument("--sound", type=Path, help="a folder of sound datasets that an earlier run kept")
        given = parser.parse_args()
        sys.exit(main(given.mutants, given.first, given.jobs, given.uses, given.only, given.sound))
