"""A schema registry for tests: a few schemas behind Confluent's paths."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any


@contextmanager
def registry_of(
    schemas: Mapping[int, Any], subjects: Mapping[str, int]
) -> Iterator[tuple[str, list[str]]]:
    """Its URL, and the paths that it was asked for."""
    asked: list[str] = []

    class Answers(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            parts = self.path.strip("/").split("/")
            number = int(parts[2]) if parts[0] == "schemas" else subjects.get(parts[1], -1)
            found = schemas.get(number)
            body = json.dumps({"id": number, "schema": json.dumps(found)}).encode()
            self.send_response(200 if found is not None else 404)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Answers) as server:
        thread = Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", asked
        finally:
            server.shutdown()
            thread.join()
