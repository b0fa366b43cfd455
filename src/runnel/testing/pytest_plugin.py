"""Fixtures for pytest, found by it wherever Runnel is installed.

`runnel_broker` is one broker for the whole run (for each worker of pytest-xdist), because tests
that use topics of their own need no more; `runnel_topic` is such a topic. A test that stops its
broker or needs other settings starts one with `start_runnel_broker`. Nothing is imported before a
test asks for a fixture.
"""

import os
import re
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from runnel.testing.broker import RunnelBroker

LOG_LINES_SHOWN = 40
_NOT_IN_A_NAME = re.compile(r"[^a-zA-Z0-9._-]+")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addini(
        "runnel_in_process",
        "run the brokers of fixtures in threads of the test process",
        type="bool",
        default=False,
    )
    parser.addini(
        "runnel_settings",
        "settings of the brokers of fixtures, one NAME=VALUE a line",
        type="linelist",
        default=[],
    )


@pytest.fixture(scope="session")
def runnel_broker(pytestconfig: pytest.Config) -> "Iterator[RunnelBroker]":
    """A Runnel broker for the whole run; clients take its `.bootstrap_servers`."""
    with _make(pytestconfig, {}) as broker:
        yield broker


@pytest.fixture
def runnel_topic(runnel_broker: "RunnelBroker", request: pytest.FixtureRequest) -> Iterator[str]:
    """The name of a new topic with one partition on `runnel_broker`, deleted after the test."""
    test = _NOT_IN_A_NAME.sub("-", request.node.name)[:80]
    name = runnel_broker.create_topic(f"{test}-{os.urandom(4).hex()}")
    yield name
    runnel_broker.delete_topic(name, missing_ok=True)  # tests of deletion do it themselves


@pytest.fixture
def start_runnel_broker(pytestconfig: pytest.Config) -> "Iterator[Callable[..., RunnelBroker]]":
    """Starts brokers of this test's own: arguments are those of `RunnelBroker`."""
    with ExitStack() as closing:  # all of them, also where one is told to have crashed

        def start(settings: dict[str, Any] | None = None, **options: Any) -> "RunnelBroker":  # noqa: ANN401  # passed on
            broker = _make(pytestconfig, settings or {}, **options)
            closing.callback(broker.close)
            return broker.start()

        yield start


def _make(config: pytest.Config, settings: dict[str, Any], **options: Any) -> "RunnelBroker":  # noqa: ANN401  # passed on
    from runnel.testing.broker import RunnelBroker
    from runnel.testing.given import laid_over

    common: dict[str, Any] = {}
    for line in config.getini("runnel_settings"):
        name, equals, value = line.partition("=")
        if not equals:
            raise pytest.UsageError(f"runnel_settings: {line!r} is not NAME=VALUE")
        common[name.strip()] = value.strip()
    options.setdefault("in_process", config.getini("runnel_in_process"))
    return RunnelBroker(laid_over(common, settings), **options)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A test that failed shows what its broker logged last."""
    report = yield
    broker = getattr(item, "funcargs", {}).get("runnel_broker")
    if report.failed and broker is not None:
        lines = broker.logs.splitlines()[-LOG_LINES_SHOWN:]
        report.sections.append(("Log of runnel_broker", "\n".join(lines)))
    return report
