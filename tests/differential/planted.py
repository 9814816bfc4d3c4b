"""Plants faults that were mended, one by one, and shows after how many seconds a generator finds each.

``python planted.py [--seconds 600] [--first SEED] [FAULT ...]``; the exit code is 0 if all are found.
"""

from __future__ import annotations

import argparse
import sys
import time
from typing import NamedTuple

from run import turns


class Found(NamedTuple):
    """When a fault was found: seconds, also those of the processor, and the seed."""

    seconds: float
    used: float
    seed: int
    finding: str


def seconds_until_found(fault: str, generator: str, first: int, most: float) -> Found | None:
    """How long it took to find a fault; None if it was not found in time."""
    begin, used = time.monotonic(), 0.0
    for told in turns(generator, first, most, planted=fault):
        used += told["seconds"]
        if told["findings"]:
            return Found(time.monotonic() - begin, used, told["seed"], told["findings"][0])
    return None


def main() -> int:
    from planted_faults import FAULTS

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("faults", nargs="*", default=list(FAULTS))
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--shown", action="store_true", help="print the findings")
    given = parser.parse_args()
    missed = 0
    for fault in given.faults:
        for generator in FAULTS[fault][1]:
            found = seconds_until_found(fault, generator, given.first, given.seconds)
            missed += found is None
            how = f"not found in {given.seconds:.0f} s"
            if found is not None:
                how = f"{found.seconds:.0f} s ({found.used:.0f} of the processor), at seed {found.seed}"
            print(f"{fault:36} {generator:12} {how}", flush=True)
            if found and given.shown:
                print(found.finding, flush=True)
    return missed


if __name__ == "__main__":
    sys.exit(main())
