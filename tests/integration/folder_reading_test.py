"""Data folders are read without their broker, compiled or not, and left as they are."""

from pathlib import Path

from runnel.client import Producer, ProducerConfig
from runnel.testing import RunnelBroker
from tests.support.command import Runnel


def test_sql_and_logs_read_a_folder(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    with RunnelBroker(data_dir=folder) as broker:
        broker.create_topic("app-logs")
        with Producer(ProducerConfig(broker.bootstrap_servers)) as producer:
            lines = [f'{{"message": "line {number}"}}'.encode() for number in range(3)]
            producer.send_batch("app-logs", lines)
    before = _files(folder)
    runnel = Runnel("127.0.0.1:1")  # where nobody answers
    text = 'select count(*) as n, max(message) as m from "app-logs"'
    assert runnel("sql", text, "--path", str(folder), "--json").json == {"n": 3, "m": "line 2"}
    found = runnel("logs", "search", "app-logs", "line", "--data-dir", str(folder), "--json")
    assert [row["message"] for row in found.json_lines] == ["line 0", "line 1", "line 2"]
    assert _files(folder) == before


def _files(folder: Path) -> dict[str, int]:
    return {str(path): path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()}
