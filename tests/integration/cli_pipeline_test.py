"""`runnel pipeline` as far as it needs no Spark: files, mistakes, states, and moving a pipeline."""

import json
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from runnel.pipelines import status
from runnel.pipelines.home import Home
from tests.support.command import Done, Runnel, command
from tests.support.process import BrokerProcess, StartBroker

PATIENCE_S = 60.0
FILE = """\
name: {name}
from: {{topic: {topic}, bootstrap: "{bootstrap}"}}
decode: {{format: json, schema: "id BIGINT"}}
to: {{table: lake/{name}}}
every: 1 minute
"""
NO_SINGLE_TOPIC = ("lag-history", "replay", "storage")  # kinds that read something else


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    with BrokerProcess(tmp_path_factory.mktemp("broker") / "data") as running:
        yield running


@pytest.fixture(scope="module")
def runnel(broker: BrokerProcess) -> Runnel:
    return Runnel(broker.bootstrap)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(folder: Path, broker: BrokerProcess, name: str, topic: str = "orders") -> Home:
    (folder / "pipelines").mkdir(exist_ok=True)
    text = FILE.format(name=name, topic=topic, bootstrap=broker.bootstrap)
    (folder / f"pipelines/{name}.yml").write_text(text)
    return Home(folder / ".runnel/pipelines" / name)


def refused(runnel: Runnel, *arguments: str) -> Done:
    done = runnel.inside("pipeline", *arguments)
    assert done.status != 0, done
    return done


def test_a_file_is_written_and_what_it_says_is_good(
    runnel: Runnel, broker: BrokerProcess, folder: Path
) -> None:
    kinds = {row["kind"] for row in runnel("pipeline", "init", "--list", "--json").json}
    assert "table" in kinds
    for kind in sorted(kinds):
        topic = () if kind in NO_SINGLE_TOPIC else ("--topic", "my-topic")
        runnel("pipeline", "init", f"my-{kind}", "--template", kind, *topic)
        assert runnel.inside("pipeline", "validate", f"my-{kind}", "--offline").status == 0
    for name in ("table", "dedup"):
        assert "topic: my-topic" in (folder / f"pipelines/my-{name}.yml").read_text()
    assert "is there already; --force" in refused(runnel, "init", "my-table").err
    assert "did you mean table?" in refused(runnel, "init", "x", "-t", "tabel").err
    assert "no name for a pipeline" in refused(runnel, "init", "a/b").err
    assert "Did you mean my-table?" in refused(runnel, "run", "my-tabel").err


def test_a_file_reads_the_topic_that_was_asked_for_or_is_not_written(
    runnel: Runnel, folder: Path
) -> None:
    runnel("pipeline", "init", "a", "--topic", "NAMES")  # NAME stands for the pipeline's
    assert "  topic: NAMES " in (folder / "pipelines/a.yml").read_text()
    runnel("pipeline", "init", "b.yml")
    assert (folder / "pipelines/b.yml").is_file()
    assert "Topic name is invalid" in refused(runnel, "init", "c", "--topic", "a: b").err
    asked = ("c", "--template", "replay", "--topic", "x")
    assert "reads no single topic" in refused(runnel, "init", *asked).err
    assert not (folder / "pipelines/c.yml").exists()
    (folder / "within").mkdir()
    (folder / "within/pipelines").touch()
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder / "within")
        assert "pipelines is no folder" in refused(runnel, "init", "d").err


@pytest.mark.parametrize("content", ["{broken", "[]", '{"version": 1}'])
def test_state_that_is_damaged_is_told_in_a_line(
    runnel: Runnel, broker: BrokerProcess, folder: Path, content: str
) -> None:
    runnel("topic", "create", f"damaged-{len(content)}")
    home = write(folder, broker, "orders", f"damaged-{len(content)}")
    home.folder.mkdir(parents=True)
    home.status_file.write_text(content)
    for asked in ("status", "stop"):
        assert "status.json cannot be read" in refused(runnel, asked, "orders").err
    home.spec_file.write_text(content)
    assert "spec.json cannot be read" in refused(runnel, "explain", "orders").err
    again = ("orders", "--to", "earliest", "--yes")
    assert "spec.json cannot be read" in refused(runnel, "reset", *again).err


def test_a_state_folder_that_cannot_be_is_told_in_a_line(
    runnel: Runnel, broker: BrokerProcess, folder: Path
) -> None:
    runnel("topic", "create", "nowhere")
    write(folder, broker, "orders", "nowhere")
    (folder / ".runnel").touch()
    for asked in (
        ("status", "orders"),
        ("stop", "orders"),
        ("reset", "orders", "--to", "earliest", "--yes"),
        ("backfill", "orders", "--from", "-7d", "--yes"),
        ("replay", "orders", "--to", "again"),
        ("dlq", "replay", "orders"),
    ):
        done = refused(runnel, *asked)
        assert "Not a directory" in done.err and len(done.err.splitlines()) == 1, done


def test_mistakes_are_all_said_before_spark_starts(runnel: Runnel, folder: Path) -> None:
    (folder / "pipelines").mkdir()
    text = "frm: {topic: x}\nto: {table: lake/x, fromat: delta}\nevery: often\n"
    (folder / "pipelines/bad.yml").write_text(text)
    done = refused(runnel, "run", "bad")
    assert done.status == 2
    assert done.err.splitlines() == [
        "pipelines/bad.yml:1:1: unknown name frm; did you mean from?",
        "pipelines/bad.yml:2:21: unknown name fromat below to; did you mean format?",
        "pipelines/bad.yml:3:8: every: 'often' is not a span of time such as 30s, 1 minute or 7"
        " days, nor once, nor continuous",
        "runnel: 3 problems; nothing was started.",
    ]
    done = refused(runnel, "validate")
    assert done.status == 1 and len(done.out.splitlines()) == 3
    (row,) = runnel("pipeline", "list", "--json").json
    assert row["mistakes"] == 3


def test_options_of_the_source_and_the_function_are_checked_before_spark_starts(
    runnel: Runnel, folder: Path
) -> None:
    (folder / "pipelines").mkdir()
    (folder / "pipelines/transforms.py").write_text("def clean(rows):\n    return rows\n")
    text = """\
from: {topic: x, start: 2 o'clock}
transform: {python: "transforms.py:cleen"}
to: {table: lake/x, options: {compresion: zstd}}
"""
    (folder / "pipelines/x.yml").write_text(text)
    done = refused(runnel, "run", "x")
    assert done.err.splitlines() == [
        'pipelines/x.yml:1:25: from.start: "2 o\'clock" is not earliest, latest, a time such as'
        " 2026-01-31T12:00 or '-2h', or offsets as JSON",
        "pipelines/x.yml:2:21: transforms.py has no function cleen; it has clean",
        "pipelines/x.yml:3:5: to: runnel-lake has no option compresion; did you mean compression?",
        "runnel: 3 problems; nothing was started.",
    ]


def test_validate_asks_the_broker_and_looks_at_the_folder(
    runnel: Runnel, broker: BrokerProcess, folder: Path
) -> None:
    topic = f"orders-{os.urandom(4).hex()}"
    write(folder, broker, "orders", topic)
    done = refused(runnel, "validate", "orders")
    assert done.out == (
        f"pipelines/orders.yml:2:15: there is no topic {topic}: 'runnel topic create {topic}'"
        " makes it\n"
    )
    assert f"there is no topic {topic}" in refused(runnel, "run", "orders").err
    runnel("topic", "create", topic)
    assert runnel("pipeline", "validate", "orders").out == "pipelines/orders.yml: good\n"
    (folder / "lake").write_text("a file")
    assert "is no folder" in refused(runnel, "validate", "orders").out


def test_a_pipeline_is_seen_from_outside(
    runnel: Runnel, broker: BrokerProcess, folder: Path
) -> None:
    home = write(folder, broker, "orders")
    assert runnel("pipeline", "status", "orders").out.split() == [
        *("pipeline", "orders", "state", "has", "never", "run")
    ]
    home.folder.mkdir(parents=True)
    mine = status.Status.of_this_process("orders", "table", "x", "every 1 minute")
    fields = {"state": "running", "rows": 1200, "lag": 30, "lag_by_partition": {"orders-0": 30}}
    home.write(home.status_file, mine.as_dict() | fields | {"updated_at": time.time()})
    shown = runnel("pipeline", "status", "orders").out
    assert "running" in shown and "1,200" in shown and "30 records (orders-0 30)" in shown
    (row,) = runnel("pipeline", "status", "--json").json
    assert (row["state"], row["lag"], row["pid"]) == ("running", 30, os.getpid())

    home.write(home.status_file, mine.as_dict() | fields | {"pid_started": "1"})
    assert "crashed" in runnel("pipeline", "list").out
    assert runnel("pipeline", "stop", "orders").line == "orders is not running"
    home.write(home.status_file, {"version": 99})
    assert "written by a newer one" in refused(runnel, "status", "orders").err


def test_reset_says_what_is_read_twice_or_skipped_and_asks(
    runnel: Runnel, broker: BrokerProcess, folder: Path
) -> None:
    topic = f"orders-{os.urandom(4).hex()}"
    home = write(folder, broker, "orders", topic)
    runnel("topic", "create", topic, "--partitions", "1")
    runnel("produce", topic, stdin="".join(f"{n}\n" for n in range(10)))
    checkpoint = home.checkpoint
    for name in ("offsets", "commits"):
        (checkpoint / name).mkdir(parents=True)
        (checkpoint / name / "4").write_text(f'v1\n{{}}\n{{"{topic}": {{"0": 6}}}}')

    done = refused(runnel, "reset", "orders", "--to", "earliest")
    assert done.out.splitlines()[1].split() == [f"{topic}-0", "6", "0", "6", "0"]
    assert "6 records will be read again" in done.err and "add --yes" in done.err
    done = refused(runnel, "reset", "orders", "--to", "latest", "--json")
    assert done.json == [
        {"topic": topic, "partition": 0, "now": 6, "to": 10, "read_twice": 0, "skipped": 4}
    ]
    assert checkpoint.exists()
    assert "is not earliest" in refused(runnel, "reset", "orders", "--to", "noon").err

    (folder / "offsets.json").write_text(json.dumps({topic: {"0": 8}}))
    done = runnel("pipeline", "reset", "orders", "--to", "offsets.json", "--yes")
    assert done.out.splitlines()[1].split() == [f"{topic}-0", "6", "8", "0", "2"]
    assert not checkpoint.exists()
    kept = json.loads(home.spec_file.read_text())
    assert (kept["generation"], json.loads(kept["start"])) == (2, {topic: {"0": 8}})
    with home.claimed():
        assert "Stop it first" in refused(runnel, "reset", "orders", "--to", "earliest").err


def test_explain_in_words(runnel: Runnel, broker: BrokerProcess, folder: Path) -> None:
    write(folder, broker, "orders")
    shown = runnel("pipeline", "explain", "orders").out
    assert f"topic orders at {broker.bootstrap}, what is committed only" in shown
    assert "each record exactly once" in shown
    assert "every 1 minute: a batch of what has come" in shown
    assert runnel("pipeline", "explain", "orders", "--json").json["runs"].startswith("every 1 min")


def test_a_run_is_watched_survives_its_broker_and_is_stopped_from_elsewhere(
    folder: Path, start_broker: StartBroker
) -> None:
    """Of a kind that needs no Spark, which makes no difference to how it is run."""
    broker = start_broker()
    runnel = Runnel(broker.bootstrap, folder)
    (folder / "pipelines").mkdir()
    text = f'name: lag\nkind: lag-history\nfrom: {{bootstrap: "{broker.bootstrap}"}}\n'
    (folder / "pipelines/lag.yml").write_text(text + "to: {table: lake/lag}\nevery: 200 ms\n")

    def state() -> str:
        return str(runnel("pipeline", "status", "lag", "--json").json["state"])

    process = subprocess.Popen(
        command("pipeline", "run", "lag"),
        env=runnel.environment(),
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        _until(lambda: state() in ("running", "waiting"))
        again = refused(runnel, "run", "lag")
        assert f"lag is running already: process {process.pid} runs it" in again.err
        broker.kill()
        _until(lambda: state() == "retrying")
        broker.start()
        _until(lambda: state() in ("running", "waiting"))
        assert runnel("pipeline", "status", "lag", "--json").json["retries"] >= 1
        assert runnel("pipeline", "stop", "lag").line == "lag stopped"
        out, err = process.communicate(timeout=PATIENCE_S)
    finally:
        process.kill()
    assert process.returncode == 0 and out.startswith("lag stopped: ")
    assert "; try 1 of 10 in 1 s" in err
    assert state() == "stopped"


def _until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.1)
