"""Plants faults that were mended, one by one, and shows after how many seconds a generator finds each.

``python planted.py [--seconds 600] [--first SEED] [FAULT ...]``; the exit code is 0 if all are found.
"""

from __future__ import annotations

import argparse
import sys
import time

from run import turns


def seconds_until_found(fault: str, generator: str, first: int, most: float) -> tuple[float, int, str] | None:
    """How long it took from which seed on, and the finding; None if nothing was found in time."""
    begin = time.monotonic()
    for told in turns(generator, first, most, planted=fault):
        if told["findings"]:
            return time.monotonic() - begin, told["seed"], told["findings"][0]
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
            how = f"{found[0]:.0f} s, at seed {found[1]}" if found else f"not found in {given.seconds:.0f} s"
            print(f"{fault:36} {generator:12} {how}", flush=True)
            if found and given.shown:
                print(found[2], flush=True)
    return missed


if __name__ == "__main__":
    sys.exit(main())
