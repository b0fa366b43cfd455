"""What a person sees of a pipeline that runs."""

from rich.console import Console

from runnel.cli.pipeline_view import drawn, fields_of
from runnel.pipelines.status import Status

NOW = 1_800_000_000.0
STATUS = Status(
    name="orders",
    kind="table",
    file="pipelines/orders.yml",
    state="running",
    every="every 1 minute",
    started_at=NOW - 125,
    batch=7,
    batches=3,
    rows=1_234_567,
    rows_per_second=10_400.0,
    batch_seconds=1.5,
    last_batch_at=NOW - 3,
    lag=1500,
    lag_by_partition={"orders-0": 0, "orders-1": 1500},
    state_rows=42_000,
    state_bytes=9 << 20,
    error="no broker answers",
    error_at=NOW - 60,
)


def test_all_that_is_known_and_nothing_else() -> None:
    fields = fields_of(STATUS, NOW)
    assert fields["state"] == "running for 2 min 5 s"
    assert fields["rows"] == "1,234,567 in 3 batches, 10.4k rows/s"
    assert fields["last batch"] == "7, took 1.50 s, 3 s ago"
    assert fields["lag"] == "1.50k records (orders-1 1.50k)"
    assert fields["state size"] == "42k rows, 9.0 MiB"
    assert fields["last error"] == "no broker answers (1 min ago)"
    assert {"retries", "note", "skipped", "watermark"}.isdisjoint(fields)


def test_a_view_for_the_terminal_says_how_to_stop() -> None:
    console = Console(width=100)
    with console.capture() as captured:
        console.print(drawn(STATUS, asked_to_stop=1))
    assert "Ctrl-C again: at once" in captured.get()
    assert "orders (table), every 1 minute" in captured.get()
