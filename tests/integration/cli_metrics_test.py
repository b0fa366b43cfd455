"""`runnel metrics` and `runnel top` against a real broker and its exporter."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from runnel.cli.exposition import parse
from runnel.cli.scraping import URL_VARIABLE, metrics_url, scrape_text
from runnel.exporter.catalogue import BY_NAME
from tests.support.command import Runnel, command
from tests.support.process import BrokerProcess
from tests.support.terminal import Terminal

RECORDS = 500
PATIENCE_S = 30.0


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    with BrokerProcess(tmp_path_factory.mktemp("metrics") / "data", metrics=True) as broker:
        runnel = Runnel(broker.bootstrap)
        runnel("topic", "create", "orders", "--partitions", "3")
        lines = "".join(f"{number}\n" for number in range(RECORDS))
        runnel("produce", "orders", stdin=lines)
        runnel("consume", "orders", "--group", "billing", "--count", "100")
        _until_told(broker, "runnel_group_committed_offset", at_least=1)
        _until_told(broker, "runnel_partition_log_end_offset", at_least=RECORDS)
        yield broker


def _until_told(broker: BrokerProcess, name: str, at_least: float) -> None:
    """Rows of partitions and groups are told a little later than they change."""
    deadline = time.monotonic() + PATIENCE_S
    url = metrics_url(None, broker.ready_file)
    while parse(scrape_text(url)).total(name) < at_least:
        assert time.monotonic() < deadline, f"{name} is not told"
        time.sleep(0.05)


@pytest.fixture
def runnel(broker: BrokerProcess, monkeypatch: pytest.MonkeyPatch) -> Runnel:
    monkeypatch.setenv(URL_VARIABLE, metrics_url(None, broker.ready_file))
    return Runnel(broker.bootstrap)


def samples_of(document: Any, name: str) -> list[Any]:  # noqa: ANN401  # JSON
    (found,) = (metric for metric in document["metrics"] if metric["name"] == name)
    samples: list[Any] = found["samples"]
    return samples


def test_a_table_by_subject(runnel: Runnel) -> None:
    out = runnel("metrics", "--interval", "0.1").out
    lines = [line.split() for line in out.splitlines()]
    assert ["produced_records_total", f"{RECORDS}", "0/s"] in lines
    for subject in ("BROKER", "THROUGHPUT", "REQUESTS", "TOPICS", "GROUPS", "STORAGE"):
        assert [subject] in lines


def test_names_choose(runnel: Runnel) -> None:
    out = runnel("metrics", "group_lag", "--interval", "0").out
    assert "group=billing topic=orders partition=" in out and "produced" not in out
    done = runnel.inside("metrics", "nothing_like_it")
    assert done.status == 2 and "'nothing_like_it'" in done.err


def test_a_topic_just_made_is_waited_for(tmp_path: Path) -> None:
    """A broker tells of topics once a second, so the first look may well find none."""
    with BrokerProcess(tmp_path / "data", metrics=True) as broker:
        runnel = Runnel(broker.bootstrap)
        where = ("--ready-file", str(broker.ready_file))
        done = runnel.inside("metrics", "topic_partitions", *where)
        assert done.status == 2 and "nothing here yet" in done.err
        runnel("topic", "create", "orders", "--partitions", "3")
        assert "orders" in runnel("metrics", "topic_partitions", "--prometheus", *where).out


def test_json_has_everything(runnel: Runnel) -> None:
    document = runnel("metrics", "--json", "--interval", "0.1").json
    assert document["interval_seconds"] >= 0.1
    (produced,) = samples_of(document, "runnel_produced_records_total")
    assert produced == {"labels": {}, "value": RECORDS, "per_second": 0}
    lags = samples_of(document, "runnel_group_lag")
    assert sum(sample["value"] for sample in lags) == RECORDS - 100
    assert all(sample["labels"]["group"] == "billing" for sample in lags)
    times = {s["labels"]["api"]: s for s in samples_of(document, "runnel_request_seconds")}
    assert times["Produce"]["count"] >= 1 and times["Produce"]["p99"] > 0
    assert {metric["name"] for metric in document["metrics"]} <= BY_NAME.keys()


def test_prometheus_text_as_it_is(runnel: Runnel) -> None:
    text = runnel("metrics", "--prometheus").out
    names = {family.name for family in text_string_to_metric_families(text)}
    assert {"runnel_requests", "runnel_group_lag", "process_open_fds"} <= names
    some = runnel("metrics", "--prometheus", "log_end").out.splitlines()
    assert some[0].startswith("# HELP") and len(some) >= 2 + 3
    assert all("runnel_partition_log_end_offset" in line for line in some)


def test_watching_goes_on_until_it_is_interrupted(runnel: Runnel) -> None:
    arguments = ("metrics", "requests_total", "--watch", "--json", "--interval", "0.1")
    with subprocess.Popen(
        command(*arguments), stdout=subprocess.PIPE, text=True, env=_environment(runnel)
    ) as process:
        assert process.stdout is not None
        documents = [json.loads(process.stdout.readline()) for _ in range(3)]
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE_S) == 130
    assert all(document["metrics"] for document in documents)


def _environment(runnel: Runnel) -> dict[str, str]:
    """Variables of the test's own environment are left out by `Runnel`; this one is wanted."""
    return runnel.environment({URL_VARIABLE: os.environ[URL_VARIABLE]})


def test_the_ready_file_says_where(broker: BrokerProcess) -> None:
    done = Runnel(broker.bootstrap)(
        "metrics", "ready", "-i0", "--ready-file", str(broker.ready_file)
    )
    assert done.out.splitlines()[-1].split() == ["ready", "1"]


def test_top_without_a_terminal_prints_one_frame(runnel: Runnel) -> None:
    out = runnel("top", "--interval", "0.2").out
    assert "orders" in out and "billing" in out and "q quit" not in out
    assert f"{RECORDS - 100}" in out, "the lag of the group"


def test_top_at_a_terminal(broker: BrokerProcess, runnel: Runnel) -> None:
    arguments = command("top", "--interval", "0.5")
    with Terminal(arguments, _environment(runnel)) as terminal:
        terminal.expect("topics by records/s")
        terminal.expect("quit")
        terminal.press("s")
        terminal.expect("topics by size")
        terminal.press("p")
        terminal.expect("paused")
        terminal.press("p")
        terminal.expect("every 0.5 s")
        terminal.resize(80, 24)
        terminal.expect("topics by size")
        terminal.press("+")
        terminal.expect("every 1 s")
        assert terminal.mode_now() != terminal.mode
        terminal.press("q")
        assert terminal.wait() == 0
        assert terminal.mode_now() == terminal.mode, "the terminal is as it was"
        assert terminal.screen.endswith("\x1b[?25h\x1b[?1049l"), "cursor and screen are back"


def test_top_waits_for_a_broker_that_went_away(runnel: Runnel, tmp_path: Path) -> None:
    with BrokerProcess(tmp_path / "data", metrics=True) as broker:
        arguments = command("top", "-i", "0.5", "--ready-file", str(broker.ready_file))
        with Terminal(arguments, _environment(runnel)) as terminal:
            terminal.expect("topics by")
            broker.kill()
            terminal.expect("no answer since")
            terminal.send_signal(signal.SIGINT)
            assert terminal.wait() == 130
            assert terminal.mode_now() == terminal.mode


def test_top_that_is_told_to_end_gives_the_terminal_back(runnel: Runnel) -> None:
    with Terminal(command("top"), _environment(runnel)) as terminal:
        terminal.expect("quit")
        terminal.send_signal(signal.SIGTERM)
        assert terminal.wait() == 128 + signal.SIGTERM
        assert terminal.mode_now() == terminal.mode
        assert terminal.screen.endswith("\x1b[?1049l")


def test_nobody_there_is_one_line(runnel: Runnel) -> None:
    done = runnel.inside("top", "--url", "127.0.0.1:1")
    assert done.status == 1 and len(done.err.splitlines()) == 1
    assert "Connection refused" in done.err and "--url" in done.err
