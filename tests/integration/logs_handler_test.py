"""Application logs in a topic: what arrives, what is lost and told, exits, forks, outages."""

import json
import logging
import logging.config
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import structlog

from runnel.client.admin import EARLIEST, LATEST, list_offsets
from runnel.client.cluster import Cluster, addresses_of
from runnel.client.reading import Reader
from runnel.logs import RunnelHandler, RunnelProcessor
from runnel.testing import RunnelBroker
from tests.support.patience import eventually
from tests.support.process import StartBroker, environment

NOBODY = "127.0.0.1:1"


def lines_of(bootstrap: str, topic: str) -> list[dict[str, Any]]:
    with Cluster(addresses_of(bootstrap)) as cluster:
        parts = [row.partition_index for row in cluster.topic(topic).partitions]
        starts, ends = (
            list_offsets(cluster, topic, dict.fromkeys(parts, edge)) for edge in (EARLIEST, LATEST)
        )
        pages = Reader(cluster, topic, starts, ends).pages()
        return [json.loads(found.record.value or b"null") for page in pages for found in page]


@pytest.fixture
def logger() -> Iterator[logging.Logger]:
    found = logging.getLogger("billing.cards")
    found.setLevel(logging.DEBUG)
    found.propagate = False
    yield found
    for handler in list(found.handlers):
        found.removeHandler(handler)
        handler.close()


def test_a_record_has_all_that_is_known(
    runnel_broker: RunnelBroker, runnel_topic: str, logger: logging.Logger
) -> None:
    handler = RunnelHandler(
        runnel_broker.bootstrap_servers, runnel_topic, service="billing", fields={"region": "eu"}
    )
    logger.addHandler(handler)
    logger.info("payment of %d", 7, extra={"user": 7, "card": {"kind": "visa"}, "path": Path("/x")})
    try:
        raise ValueError("declined")
    except ValueError:
        logger.exception("payment failed")
    circle: list[object] = []
    circle.append(circle)
    pairs = {(1, 2): 3}
    extra = {"nan": float("nan"), "circle": circle, "pairs": pairs, "order": 7}
    logger.warning("odd", extra=extra)
    logger.error("large %s", "x" * 2_000_000, extra={"more": "y" * 600_000})
    handler.flush()
    first, second, odd, large = lines_of(runnel_broker.bootstrap_servers, runnel_topic)
    assert (first["level"], first["service"], first["logger"]) == (
        "info",
        "billing",
        "billing.cards",
    )
    assert first["message"] == "payment of 7"
    assert first["fields"] == {"region": "eu", "user": 7, "card": {"kind": "visa"}, "path": "/x"}
    assert first["thread"] == "MainThread" and first["pid"] > 0 and first["host"]
    assert first["ts"].endswith("Z") and "exception" not in first
    assert second["level"] == "error" and "ValueError: declined" in second["exception"]
    texts = {"nan": "nan", "circle": "[[...]]", "pairs": "{(1, 2): 3}"}
    assert odd["fields"] == {"region": "eu", **texts, "order": 7}
    assert large["message"].endswith("... (cut)") and len(large["fields"]["fields"]) < 70_000
    assert (handler.sent, handler.lost) == (4, 0)


def test_configured_by_a_dictionary(runnel_broker: RunnelBroker, runnel_topic: str) -> None:
    handler = {
        "class": "runnel.logs.RunnelHandler",
        "bootstrap": runnel_broker.bootstrap_servers,
        "topic": runnel_topic,
        "service": "shop",
        "level": "WARNING",
    }
    logging.config.dictConfig(
        {
            "version": 1,
            "disable_existing_loggers": False,
            "handlers": {"topic": handler},
            "loggers": {"shop": {"handlers": ["topic"], "level": "DEBUG", "propagate": False}},
        }
    )
    made = logging.getLogger("shop").handlers[0]
    logging.getLogger("shop").info("not this")
    logging.getLogger("shop.cart").warning("this")
    made.close()
    logging.getLogger("shop").removeHandler(made)
    assert [
        line["message"] for line in lines_of(runnel_broker.bootstrap_servers, runnel_topic)
    ] == ["this"]


def test_many_threads_keep_their_order(
    runnel_broker: RunnelBroker, runnel_topic: str, logger: logging.Logger
) -> None:
    handler = RunnelHandler(runnel_broker.bootstrap_servers, runnel_topic)
    logger.addHandler(handler)

    def work(name: str) -> None:
        for number in range(1000):
            logger.info("%s %d", name, number)

    threads = [threading.Thread(target=work, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    handler.flush()
    found = [line["message"] for line in lines_of(runnel_broker.bootstrap_servers, runnel_topic)]
    assert len(found) == 4000
    for name in "abcd":
        assert [line for line in found if line[0] == name] == [f"{name} {n}" for n in range(1000)]


def test_without_a_broker_nothing_waits_and_loss_is_counted(
    logger: logging.Logger, capsys: pytest.CaptureFixture[str]
) -> None:
    handler = RunnelHandler(NOBODY, "logs", buffer_bytes=100_000, exit_timeout_s=0.2)
    logger.addHandler(handler)
    for number in range(2000):
        logger.info("line %d", number)
    kept = 2000 - handler.lost
    assert 0 < kept < 1000
    logger.removeHandler(handler)
    handler.close()
    assert handler.lost == 2000
    assert "2000 log records did not reach logs at 127.0.0.1:1" in capsys.readouterr().err


def test_loss_is_told_when_the_broker_is_back(
    start_broker: StartBroker, logger: logging.Logger
) -> None:
    broker = start_broker()
    handler = RunnelHandler(broker.bootstrap, "logs", buffer_bytes=100_000)
    logger.addHandler(handler)
    logger.info("before")
    handler.flush()
    broker.kill()
    for number in range(2000):
        logger.info("line %d", number)
    lost = handler.lost
    assert lost > 1000
    broker.start()
    deadline = time.monotonic() + 60
    told: list[dict[str, Any]] = []
    while not told and time.monotonic() < deadline:
        handler.flush()
        lines = lines_of(broker.bootstrap, "logs")
        told = [line for line in lines if line["logger"] == "runnel.logs"]
    messages = [line["message"] for line in lines if line not in told]
    assert messages == ["before", *(f"line {number}" for number in range(2000 - lost))]
    assert told[0]["fields"]["lost"] == lost
    assert told[0]["level"] == "warning" and "were lost" in told[0]["message"]
    broker.stop()


def test_structlog(runnel_broker: RunnelBroker, runnel_topic: str) -> None:
    processor = RunnelProcessor(runnel_broker.bootstrap_servers, runnel_topic, service="web")
    seen: list[str] = []

    def last(logger: object, name: str, event: Any) -> str:  # noqa: ANN401  # structlog's own type
        seen.append(event["event"])
        raise structlog.DropEvent

    log = structlog.wrap_logger(
        structlog.PrintLogger(),
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso"),
            processor,
            last,
        ],
    ).bind(request="r-1")
    log.warning("slow answer", took_ms=812)
    try:
        raise KeyError("gone")
    except KeyError:
        log.exception("failed")
    assert processor.flush()
    processor.close()
    slow, failed = lines_of(runnel_broker.bootstrap_servers, runnel_topic)
    assert seen == ["slow answer", "failed"]
    assert slow["fields"] == {"request": "r-1", "took_ms": 812}
    assert (slow["level"], slow["message"], slow["service"]) == ("warning", "slow answer", "web")
    assert failed["level"] == "error" and "KeyError: 'gone'" in failed["exception"]


@pytest.mark.parametrize(
    "stamp",
    [
        pytest.param(1_794_000_000_000_000_000, id="nanoseconds"),
        pytest.param(1_794_000_000_000, id="milliseconds"),
        pytest.param(-1.0, id="negative"),
        pytest.param(1 << 2000, id="huge"),
        pytest.param(float("nan"), id="nan"),
        pytest.param("0001-01-01", id="text"),
    ],
)
def test_a_time_that_is_none_is_now(
    runnel_broker: RunnelBroker, runnel_topic: str, stamp: float | str
) -> None:
    processor = RunnelProcessor(runnel_broker.bootstrap_servers, runnel_topic)
    processor(None, "info", {"event": "odd", "timestamp": stamp})
    processor(None, "info", {"event": "after"})
    assert processor.flush()
    odd, after = lines_of(runnel_broker.bootstrap_servers, runnel_topic)
    assert odd["ts"][:10] == after["ts"][:10] and (processor.sent, processor.lost) == (2, 0)
    processor.close()


def test_a_refused_record_takes_no_others_with_it(
    runnel_broker: RunnelBroker, runnel_topic: str, capsys: pytest.CaptureFixture[str]
) -> None:
    processor = RunnelProcessor(runnel_broker.bootstrap_servers, runnel_topic)
    for number in range(11):
        event = {"event": f"line {number}"}
        # The broker takes what is an hour ahead, and no more.
        ahead = {"timestamp": time.time() + 7200} if number in (3, 10) else {}
        processor(None, "info", {**event, **ahead})
    assert processor.flush()
    assert (processor.sent, processor.lost) == (9, 2)
    processor(None, "info", {"event": "later"})
    assert processor.flush()
    processor.close()
    found = [line["message"] for line in lines_of(runnel_broker.bootstrap_servers, runnel_topic)]
    assert [line for line in found if line.startswith("line")] == [
        f"line {number}" for number in range(11) if number not in (3, 10)
    ]
    assert [line[:18] for line in found if "lost" in line] == ["2 log records were"]
    assert found[-1] == "later" and "did not reach" not in capsys.readouterr().err


def test_a_failure_that_nobody_expects_loses_its_batch_alone(
    runnel_broker: RunnelBroker,
    runnel_topic: str,
    logger: logging.Logger,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from runnel.client.sending import Sender

    flush, failures = Sender.flush, [ZeroDivisionError("surprise")]

    def failing(self: Sender) -> None:
        if failures:
            raise failures.pop()
        flush(self)

    monkeypatch.setattr(Sender, "flush", failing)
    handler = RunnelHandler(runnel_broker.bootstrap_servers, runnel_topic)
    logger.addHandler(handler)
    logger.info("lost")
    handler.flush()
    logger.info("sent")
    handler.flush()
    assert (handler.sent, handler.lost) == (1, 1)
    messages: list[str] = []

    def has_told() -> bool:  # right after the batch that went through
        found = lines_of(runnel_broker.bootstrap_servers, runnel_topic)
        messages[:] = [line["message"] for line in found]
        return len(messages) > 1

    eventually(has_told)
    assert messages[0] == "sent" and messages[1].startswith("1 log records were lost")


def test_once_closed_nobody_waits(logger: logging.Logger) -> None:
    """As at exit: `atexit` closes, then logging flushes and closes every handler."""
    with socket.create_server(("127.0.0.1", 0)) as silent:  # it takes connections, and no more
        bootstrap = f"127.0.0.1:{silent.getsockname()[1]}"
        handler = RunnelHandler(bootstrap, "logs", exit_timeout_s=0.5)
        logger.addHandler(handler)
        logger.info("line")
        logger.removeHandler(handler)
        began = time.monotonic()
        handler.close()
        handler.flush()
        handler.close()
        assert time.monotonic() - began < 3


PROGRAM = """
import logging, multiprocessing, os, sys
from runnel.logs import RunnelHandler
handler = RunnelHandler(sys.argv[1], sys.argv[2], service="forks")
logging.basicConfig(level="INFO", handlers=[handler])

def work(name):
    logging.info("%s of %d", name, os.getpid())

if __name__ == "__main__":
    logging.info("parent %d", os.getpid())
    context = multiprocessing.get_context("fork")
    children = [context.Process(target=work, args=(f"child {n}",)) for n in range(3)]
    for child in children: child.start()
    for child in children: child.join()
    logging.info("parent again")
"""


def test_forks_and_exits(runnel_broker: RunnelBroker, runnel_topic: str, tmp_path: Path) -> None:
    """Nobody flushes: what is in the buffers at exit is sent, by parent and children, once."""
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    subprocess.run(
        [sys.executable, str(program), runnel_broker.bootstrap_servers, runnel_topic],
        env=environment(),
        check=True,
        timeout=60,
    )
    lines = lines_of(runnel_broker.bootstrap_servers, runnel_topic)
    messages = sorted(line["message"].rsplit(" of ")[0].rstrip("0123456789 ") for line in lines)
    assert messages == ["child", "child", "child", "parent", "parent again"]
    assert all(
        line["message"].endswith(str(line["pid"]))
        for line in lines
        if line["message"].startswith("child")
    )
    assert len({line["pid"] for line in lines}) == 4


def test_what_the_sending_thread_logs_is_not_sent(
    runnel_broker: RunnelBroker,
    runnel_topic: str,
    logger: logging.Logger,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from runnel.client.sending import Sender

    flush = Sender.flush

    def talkative(self: Sender) -> None:
        logger.info("the client says something")
        flush(self)

    monkeypatch.setattr(Sender, "flush", talkative)
    handler = RunnelHandler(runnel_broker.bootstrap_servers, runnel_topic)
    logger.addHandler(handler)
    logger.info("mine")
    handler.flush()
    found = [line["message"] for line in lines_of(runnel_broker.bootstrap_servers, runnel_topic)]
    assert found == ["mine"]


@pytest.mark.parametrize(
    ("bootstrap", "topic", "buffer_bytes", "why"),
    [
        ("nonsense", "logs", 1 << 20, "HOST:PORT"),
        (NOBODY, "", 1 << 20, "topic"),
        (NOBODY, "logs", 10, "buffer_bytes"),
    ],
)
def test_what_cannot_be_right_is_refused(
    bootstrap: str, topic: str, buffer_bytes: int, why: str
) -> None:
    with pytest.raises(ValueError, match=why):
        RunnelHandler(bootstrap, topic, buffer_bytes=buffer_bytes)
