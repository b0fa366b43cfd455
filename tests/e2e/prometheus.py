"""A real Prometheus on a free port, and somebody to whom it sends its alerts."""

import json
import re
import subprocess
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self
from urllib.parse import quote
from urllib.request import urlopen

from tests.e2e.debian import Tools
from tests.support.kafka_tools import free_port

PATIENCE_S = 60.0
LOOK_EVERY_S = 0.2


def hurried(rules: str) -> str:
    """The alert rules with minutes as seconds, and transactions that are old after 3 s.

    What they compare, and with what, stays as it is.
    """
    rules = re.sub(r"\bfor: \w+", "for: 1s", rules)
    rules = re.sub(r"\[\d+[mh]\]", "[10s]", rules)
    rules = re.sub(r"offset \d+m", "offset 5s", rules)
    return rules.replace("oldest_seconds > 900", "oldest_seconds > 3")


class Sample(NamedTuple):
    labels: dict[str, str]
    value: float


class QueryError(Exception):
    """Prometheus refused an expression."""


class Receiver:
    """Stands where Alertmanager would: remembers which alerts were sent, and which ended."""

    def __init__(self) -> None:
        received: list[dict[str, Any]] = []

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                size = int(self.headers.get("Content-Length", "0"))
                received.extend(json.loads(self.rfile.read(size)))
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: object) -> None:
                """Not to the terminal."""

        self.received = received
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self._server.server_port}"

    def names(self) -> set[str]:
        return {alert["labels"]["alertname"] for alert in self.received}

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class Prometheus:
    """Scrapes the given addresses twice a second. Use as a context manager."""

    def __init__(
        self, tools: Tools, folder: Path, targets: list[str], rules: str, receiver: Receiver
    ) -> None:
        folder.mkdir(parents=True)
        (folder / "alerts.yml").write_text(rules)
        config = {
            "global": {"scrape_interval": "500ms", "evaluation_interval": "500ms"},
            "rule_files": ["alerts.yml"],
            "alerting": {"alertmanagers": [{"static_configs": [{"targets": [receiver.address]}]}]},
            "scrape_configs": [{"job_name": "runnel", "static_configs": [{"targets": targets}]}],
        }
        (folder / "prometheus.yml").write_text(json.dumps(config))  # which is YAML too
        self._command = [
            str(tools.prometheus),
            f"--config.file={folder}/prometheus.yml",
            f"--storage.tsdb.path={folder}/data",
            "--log.level=warn",
        ]
        self._log = folder / "prometheus.log"
        self._process: subprocess.Popen[bytes] | None = None
        self._url = ""

    def __enter__(self) -> Self:
        port = free_port()
        self._url = f"http://127.0.0.1:{port}"
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [*self._command, f"--web.listen-address=127.0.0.1:{port}"], stdout=log, stderr=log
            )
        self.until(self._is_ready, "Prometheus is ready")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._process is not None
        self._process.terminate()
        self._process.wait(PATIENCE_S)

    def _is_ready(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, self._log.read_text()
        try:
            with urlopen(f"{self._url}/-/ready", timeout=5) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

    def until(self, look: Callable[[], object], what: str) -> None:
        """Returns as soon as `look` finds something."""
        deadline = time.monotonic() + PATIENCE_S
        while not look():
            assert time.monotonic() < deadline, f"waited {PATIENCE_S} s until {what}"
            time.sleep(LOOK_EVERY_S)

    def query(self, expression: str) -> list[Sample]:
        """Raises QueryError."""
        try:
            answer = self._get(f"/api/v1/query?query={quote(expression)}")
        except OSError as error:
            raise QueryError(f"{expression}: {error}") from None
        if isinstance(answer["result"], list) and answer["resultType"] == "vector":
            return [Sample(row["metric"], float(row["value"][1])) for row in answer["result"]]
        return [Sample({}, float(answer["result"][1]))]

    def value(self, expression: str) -> float | None:
        """Of an expression with one result; None while there is none."""
        samples = self.query(expression)
        return samples[0].value if samples else None

    def firing(self) -> set[str]:
        rows = self._get("/api/v1/alerts")["alerts"]
        return {row["labels"]["alertname"] for row in rows if row["state"] == "firing"}

    def _get(self, path: str) -> Any:  # noqa: ANN401  # Prometheus's JSON
        with urlopen(self._url + path, timeout=10) as answer:
            return json.loads(answer.read())["data"]
