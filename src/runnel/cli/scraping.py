"""Where a broker's exporter is found, and what it answers."""

import json
from pathlib import Path
from typing import Annotated, Final
from urllib.parse import urlsplit

import typer

from runnel.cli.output import EXIT_FAILED, CommandError

URL_VARIABLE: Final = "RUNNEL_METRICS_URL"
DEFAULT_URL: Final = "http://127.0.0.1:9644/metrics"  # as the default of runnel.http.listener
TIMEOUT_S: Final = 10.0
ANSWER_BYTES_MAX: Final = 512 << 20  # some three million lines
READY_FILE_BYTES_MAX: Final = 1 << 16

Url = Annotated[
    str | None,
    typer.Option(
        "--url",
        "-u",
        envvar=URL_VARIABLE,
        metavar="URL",
        help=f"Where the broker serves its metrics: HOST:PORT will do. Else {DEFAULT_URL}.",
    ),
]
ReadyFile = Annotated[
    Path | None,
    typer.Option(
        "--ready-file",
        metavar="FILE",
        help="The file of 'runnel serve --ready-file': the address is in it.",
    ),
]


class UnansweredError(CommandError):
    """Nobody answers, or not with metrics. `brief` is for where there is no room for advice."""

    def __init__(self, url: str, brief: str) -> None:
        super().__init__(
            f"no metrics from {url}: {brief}. Is the broker running ('runnel serve')? Its log says"
            f" where it serves them; name another address with --url or {URL_VARIABLE}.",
            EXIT_FAILED,
        )
        self.brief = brief


def metrics_url(url: str | None, ready_file: Path | None) -> str:
    """The whole URL. Raises CommandError."""
    if ready_file is not None:
        url = _in_ready_file(ready_file)
    if url is None:
        return DEFAULT_URL
    whole = url if "//" in url else f"http://{url}"
    try:
        parts = urlsplit(whole)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname)
        parts.port  # noqa: B018  # raises for what is no port
    except ValueError:
        usable = False
    if not usable or parts.username is not None:
        raise CommandError(f"--url: {url!r} is no address; write it as 127.0.0.1:9644.")
    return whole if parts.path.strip("/") else f"{parts.scheme}://{parts.netloc}/metrics"


def _in_ready_file(path: Path) -> str:
    try:
        with path.open() as file:
            content = json.loads(file.read(READY_FILE_BYTES_MAX))
    except OSError as error:
        raise CommandError(
            f"--ready-file: {path}: {error.strerror}. It is there while the broker runs."
        ) from None
    except ValueError:
        raise CommandError(f"--ready-file: {path} is no JSON; is it another file?") from None
    found = content.get("http") if isinstance(content, dict) else None
    address = found[0] if isinstance(found, list) and found else found
    if not isinstance(address, str):
        raise CommandError(
            f"--ready-file: {path} names no 'http' address: this broker serves no metrics."
        )
    return address


def scrape_text(url: str, timeout_s: float = TIMEOUT_S) -> str:
    """What the exporter says now. Raises UnansweredError."""
    from http.client import HTTPConnection, HTTPException, HTTPSConnection

    parts = urlsplit(url)
    assert parts.hostname is not None, "metrics_url has looked"
    kind = HTTPSConnection if parts.scheme == "https" else HTTPConnection
    connection: HTTPConnection | None = None
    target = parts.path + (f"?{parts.query}" if parts.query else "")
    try:
        connection = kind(parts.hostname, parts.port, timeout=timeout_s)
        connection.request("GET", target, headers={"Accept": "text/plain"})
        answer = connection.getresponse()
        body = answer.read(ANSWER_BYTES_MAX + 1)
    except (OSError, HTTPException, UnicodeError) as error:
        raise UnansweredError(url, _why(error)) from None
    finally:
        if connection is not None:
            connection.close()
    if answer.status != 200:
        raise UnansweredError(url, f"it answers {answer.status} {answer.reason}")
    if len(body) > ANSWER_BYTES_MAX:
        raise UnansweredError(url, f"its answer is longer than {ANSWER_BYTES_MAX} bytes")
    return body.decode(errors="replace")


def _why(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return "it did not answer in time"
    if isinstance(error, UnicodeError):  # Python's, of a part that is empty or too long
        return "that is no name of a host"
    return str(getattr(error, "strerror", None) or error or type(error).__name__).rstrip(".")
