"""How a task begins in a process that has had others before."""

import subprocess
import sys

import pytest

from runnel.spark.tasks import REUSED
from tests.support.process import environment

PROGRAM = """
import gc
from runnel.spark.tasks import settle

for _ in range(3):
    settle()
    print(gc.get_freeze_count() > 0)
"""


@pytest.mark.parametrize(
    ("variables", "frozen"),
    [({REUSED: "1"}, ["False", "True", "True"]), ({}, ["False", "False", "False"])],
)
def test_what_modules_made_is_left_alone_from_the_second_task_on(
    variables: dict[str, str], frozen: list[str]
) -> None:
    """Only where Spark hands task after task to one process: elsewhere it is not ours."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env=environment(variables),
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == frozen
