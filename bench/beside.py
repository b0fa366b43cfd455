"""Work in a process of its own, beside what is measured: half a load, a reader of cold data.

The work is a function of a module; it gets a `Link`, by which it says that it is under way and
learns that it should end, and what it returns comes back. A work that fails ends the cell.
"""

import multiprocessing
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from typing import Concatenate, Generic, ParamSpec, TypeVar

from runnel.bench.pipeline import LoadError

Result = TypeVar("Result")
Arguments = ParamSpec("Arguments")
READY_TIMEOUT_S = 60.0
RESULT_TIMEOUT_S = 60.0
_READY = "ready"


class Link:
    """The work's end."""

    def __init__(self, connection: "Connection[object, object]") -> None:
        self._connection = connection

    def say_ready(self) -> None:
        self._connection.send(_READY)

    def is_over(self) -> bool:
        return self._connection.poll()


class Side(Generic[Result]):
    """The measuring end."""

    def __init__(self, connection: "Connection[object, Result]") -> None:
        self._connection = connection

    def result(self) -> Result:
        """Ask for the end and wait for it. Raises LoadError if the work failed."""
        self._connection.send(None)
        return _received(self._connection, RESULT_TIMEOUT_S)


@contextmanager
def beside(
    work: Callable[Concatenate[Link, Arguments], Result],
    *arguments: Arguments.args,
    **named: Arguments.kwargs,
) -> Iterator[Side[Result]]:
    """From the moment that the work is under way to the end of the block, where it is ended."""
    context = multiprocessing.get_context("spawn")
    mine, theirs = context.Pipe()
    process = context.Process(target=_run, args=(theirs, work, arguments, named), daemon=True)
    process.start()
    theirs.close()
    try:
        _received(mine, READY_TIMEOUT_S)
        yield Side(mine)
    finally:
        mine.close()
        process.terminate()
        process.join()


def _run(
    connection: "Connection[object, object]",
    work: Callable[..., object],
    arguments: tuple[object, ...],
    named: dict[str, object],
) -> None:
    connection.send(work(Link(connection), *arguments, **named))


def _received(connection: "Connection[object, Result]", timeout_s: float) -> Result:
    try:
        if connection.poll(timeout_s):
            return connection.recv()
    except EOFError:
        raise LoadError("the work beside failed; its error stands above") from None
    raise LoadError(f"the work beside says nothing for {timeout_s} s")
