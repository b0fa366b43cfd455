"""The steps of a batch, told to whoever wants to see what a crash at one of them does.

Nobody is told unless the environment names a function, as `module:function`; the fault runs in
`tests/spark_faults` do. Python workers of Spark inherit the driver's environment.
"""

import os
from importlib import import_module
from typing import Final

VARIABLE: Final = "RUNNEL_SPARK_STEPS"


def reached(step: str) -> None:
    """Called in the process that has come so far: a task's worker, or the driver's."""
    named = os.environ.get(VARIABLE)
    if named:
        module, _, function = named.partition(":")
        getattr(import_module(module), function)(step)
