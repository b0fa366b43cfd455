"""`runnel storage` beside a broker that writes, rolls and deletes, and after it was killed.

Nothing may be found wrong with what a healthy broker is doing, and a kill leaves at most a torn
end, which the next start cuts.
"""

import contextlib
import json
import os
import pty
import re
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.support.batches import make_batch
from tests.support.process import StartBroker, environment

PATIENCE_S = 60.0
LOOKS = 6
SETTINGS = {"log.retention.check.interval.ms": "100", "log.flush.scheduler.interval.ms": "100"}


def storage(*arguments: object, status: int = 0) -> Any:  # noqa: ANN401  # as json.loads
    done = subprocess.run(
        [sys.executable, "-m", "runnel", "storage", *map(str, arguments), "--json"],
        capture_output=True, env=environment(), text=True, timeout=PATIENCE_S,
    )  # fmt: skip
    assert done.returncode == status, done.stdout + done.stderr
    return json.loads(done.stdout)


class Load:
    """Idempotent records of about a kilobyte to one topic, until it is ended."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self._ended = threading.Event()
        self._producer = Producer(
            {"bootstrap.servers": bootstrap, "enable.idempotence": True, "log_level": 0}
        )
        self._topic = topic
        self.sent = 0
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        while not self._ended.is_set():
            for _ in range(200):
                self._producer.produce(self._topic, b"v" * 1_000, str(self.sent).encode())
                self.sent += 1
            self._producer.flush(PATIENCE_S)
            time.sleep(0.01)

    def end(self) -> int:
        self._ended.set()
        self._thread.join()
        assert self._producer.flush(PATIENCE_S) == 0
        return self.sent


def _described_once_something_is_deleted(data_dir: Path) -> Any:  # noqa: ANN401  # as `storage`
    deadline_s = time.monotonic() + PATIENCE_S
    while True:
        described = storage("describe", data_dir, "busy")
        if described["partitions"][0]["log_start_offset"] > 0:
            return described
        assert time.monotonic() < deadline_s, "nothing was deleted meanwhile"


def test_a_broker_at_work_has_nothing_wrong(start_broker: StartBroker) -> None:
    broker = start_broker(settings=SETTINGS)
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    config = {"segment.bytes": str(1 << 20), "retention.bytes": str(3 << 20)}
    admin.create_topics([NewTopic("busy", 1, 1, config=config)])["busy"].result(PATIENCE_S)
    load = Load(broker.bootstrap, "busy")
    seen: list[Any] = []
    try:
        for _ in range(LOOKS):
            seen.append(storage("verify", broker.data_dir, "--deep"))
        described = _described_once_something_is_deleted(broker.data_dir)
        storage("analyze", broker.data_dir)
    finally:
        sent = load.end()
    assert [one["findings"] for one in seen] == [[]] * LOOKS
    assert described["in_use_by"] == broker.pid
    print(f"\n{sent} records sent meanwhile, {seen[-1]['checked']['segments']} segments at the end")
    broker.stop()
    described = storage("describe", broker.data_dir, "busy")
    assert described["clean_shutdown"] and described["in_use_by"] is None
    assert described["partitions"][0]["log_end_offset"] == sent


def test_after_a_kill_only_an_end_may_be_torn(start_broker: StartBroker) -> None:
    broker = start_broker()
    load = Load(broker.bootstrap, "killed")
    while load.sent < 2_000:
        time.sleep(0.01)
    sent = load.end()
    broker.kill()
    log = Path(broker.data_dir) / "killed-0" / f"{0:020d}.log"
    assert storage("verify", broker.data_dir)["findings"] == []
    with log.open("ab") as file:
        file.write(log.read_bytes()[:500])  # of a batch: it is torn, as by a crash
    (finding,) = storage("verify", broker.data_dir, status=1)["findings"]
    assert finding["path"] == str(log) and finding["what"].startswith("torn: ")
    broker.start()
    broker.stop()
    assert storage("verify", broker.data_dir, "--deep")["findings"] == []
    analyzed = storage("analyze", broker.data_dir, "killed")
    assert analyzed["messages"] == analyzed["with_key"] == sent
    assert analyzed["value_bytes"]["max"] == 1_000


def test_long_work_shows_progress_and_can_be_cancelled(tmp_path: Path) -> None:
    """On a terminal: a bar, and Ctrl-C ends it with the status of an interrupted command."""
    folder = tmp_path / "long-0"
    folder.mkdir()
    _, raw = make_batch(0, 1)
    (folder / f"{0:020d}.log").write_bytes(raw * (64_000_000 // len(raw)))
    pid, terminal = pty.fork()
    if pid == 0:
        command = [sys.executable, "-m", "runnel", "storage", "analyze", str(folder)]
        os.execve(sys.executable, command, environment({"TERM": "xterm", "COLUMNS": "100"}))
    shown, is_cancelled = b"", False
    with contextlib.suppress(OSError):  # which is how a terminal says that its other end is gone
        while data := os.read(terminal, 4096):
            shown += data
            if not is_cancelled and re.search(rb"analyzing.*[1-9]\d?%", shown, re.DOTALL):
                os.write(terminal, b"\x03")
                is_cancelled = True
    os.close(terminal)
    _, status = os.waitpid(pid, 0)
    assert is_cancelled, shown[-500:]
    assert os.waitstatus_to_exitcode(status) == 130, shown[-500:]
    assert b"Traceback" not in shown
