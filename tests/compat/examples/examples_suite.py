"""The programs of `examples/` print the same about Apache Kafka as about Runnel.

`python -m tests.compat.examples.examples_suite`; twice, so that a second run finds what the first
has left. `tests/examples_test.py` runs them against Runnel.
"""

import subprocess
import tempfile
from functools import partial
from pathlib import Path

from tests.compat.checks import Checks
from tests.support.example_files import PROGRAMS, check_program, takes_any_broker
from tests.support.kafka_tools import KafkaBroker

SOON = {"group.initial.rebalance.delay.ms": "0"}


def main() -> None:
    checks = Checks((subprocess.TimeoutExpired,))
    with (
        tempfile.TemporaryDirectory() as scratch,
        KafkaBroker(Path(scratch) / "data", settings=SOON) as broker,
    ):
        for time in ("first", "second"):
            for program in filter(takes_any_broker, PROGRAMS):
                check = partial(check_program, program, broker.bootstrap)
                checks.check(f"examples/{program.name} on Kafka, {time} run", check)
    checks.end()


if __name__ == "__main__":
    main()
