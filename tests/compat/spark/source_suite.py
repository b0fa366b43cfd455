"""Unit tests of the Spark source and sink that need a broker, on Apache Kafka: the same holds.

`python -m tests.compat.spark.source_suite kafka`; with `runnel` too, as make test has the others.
"""

import os
import sys

import pytest

# What tests/support/spark_brokers.py looks for: not imported, as pytest has to do it first.
CHOICE = "RUNNEL_SPARK_TESTS_ON"
TESTS = ("stream_test.py", "batch_read_test.py", "pushdown_test.py", "exactly_once_test.py")


class _Lines:
    """One line for each test, as suites print them; pytest has begun a line of dots before it."""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        what = report.nodeid.rpartition("::")[2]
        if report.failed:
            why = " ".join(str(report.longrepr).split())[-300:]
            print(f"\nfail\t{what}\t{why}", flush=True)
        elif report.when == "call":
            print(f"\npass\t{what}", flush=True)


def main() -> None:
    os.environ[CHOICE] = "kafka"
    paths = [f"tests/unit/spark/{name}" for name in TESTS]
    arguments = ["-q", "-n", "0", *paths]
    sys.exit(pytest.main(arguments, plugins=[_Lines()]))


if __name__ == "__main__":
    main()
