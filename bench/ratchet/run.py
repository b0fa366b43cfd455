"""The ratchet: no change makes produce or fetch cost more instructions without anybody noticing.

    python -m bench.ratchet.run [--accept]

Instructions, not time: the count does not depend on what else the machine does, so it can stand
among the checks. Exit status 1 if a part costs over 3 % more than its baseline.
"""

import argparse
import sys
from pathlib import Path

from bench.ratchet.baselines import settle
from bench.ratchet.counting import CountingError, can_count, count, machine_key
from bench.ratchet.parts import PARTS

BASELINES = Path(__file__).with_name("baselines.json")


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="make ratchet", description=__doc__.splitlines()[0])
    parser.add_argument("--accept", action="store_true", help="these counts are the new baseline")
    options = parser.parse_args(argv)
    if not can_count():
        print("ratchet SKIPPED: instructions are counted by valgrind, which is not installed here")
        return 0
    print("counting the instructions of produce and fetch, about 30 s", flush=True)
    try:
        counts = count(PARTS)
    except CountingError as error:
        print(f"ratchet: {error}")
        return 1
    return settle(BASELINES, machine_key(), counts, accept=options.accept, say=print)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
