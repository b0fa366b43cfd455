"""Which address a command asks, and what is said of one that does not serve metrics."""

import json
from pathlib import Path

import pytest

from runnel.cli.output import CommandError
from runnel.cli.scraping import DEFAULT_URL, UnansweredError, metrics_url, scrape_text


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (None, DEFAULT_URL),
        ("broker-1:9644", "http://broker-1:9644/metrics"),
        ("http://broker-1:9644/", "http://broker-1:9644/metrics"),
        ("https://metrics.example/runnel?x=1", "https://metrics.example/runnel?x=1"),
        ("[::1]:9644", "http://[::1]:9644/metrics"),
    ],
)
def test_addresses_as_people_write_them(given: str | None, expected: str) -> None:
    assert metrics_url(given, None) == expected


@pytest.mark.parametrize("given", ["", "ftp://host/", "host:port", "http://", "http://u:p@host"])
def test_what_is_no_address_is_refused(given: str) -> None:
    with pytest.raises(CommandError, match="no address"):
        metrics_url(given, None)


@pytest.mark.parametrize("http", ["127.0.0.1:7", ["127.0.0.1:7"], "http://127.0.0.1:7/metrics"])
def test_the_ready_file_says_where(tmp_path: Path, http: object) -> None:
    path = tmp_path / "ready"
    path.write_text(json.dumps({"kafka": ["127.0.0.1:1"], "http": http}))
    assert metrics_url("elsewhere:1", path) == "http://127.0.0.1:7/metrics"


@pytest.mark.parametrize("content", [None, "", "[]", "{", '{"kafka": []}', '{"http": []}'])
def test_a_ready_file_without_it_says_what_is_wrong(tmp_path: Path, content: str | None) -> None:
    path = tmp_path / "ready"
    if content is not None:
        path.write_text(content)
    with pytest.raises(CommandError, match="--ready-file"):
        metrics_url(None, path)


@pytest.mark.parametrize("host", ["a..b", f"{'x' * 70}.com"])
def test_what_no_host_is_called(host: str) -> None:
    with pytest.raises(UnansweredError, match="no name of a host"):
        scrape_text(metrics_url(f"{host}:9", None))


def test_nobody_there() -> None:
    with pytest.raises(UnansweredError, match="runnel serve") as caught:
        scrape_text("http://127.0.0.1:1/metrics")
    assert caught.value.brief == "Connection refused"
