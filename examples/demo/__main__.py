"""A shop on the web, from clicks to a picture of its day: under two minutes, then it is gone.

`make demo`, or `make demo ARGS=--fast` without pauses. It starts a broker on a free port and in a
temporary folder, lets a shop send orders and clicks, runs two pipelines (orders into a Delta table;
clicks, counted in windows, back to a topic), kills the broker while they run, counts whether
anything was lost, asks both with SQL and finds out what went wrong yesterday. Ctrl-C ends it.
"""

import argparse
import logging
import os
import re
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from findings import account, ask, find_out, look_at, read_day
from plot import Panel, blocks, hours, svg, write_svg
from rich.table import Table
from running import Running
from shop import CLICKS, ORDERS, Shop
from tour import Tour

from runnel.testing import RunnelBroker

HERE = Path(__file__).parent
COUNTED = "clicks_by_city"
VISITS, FAST_VISITS = 40_000, 8_000
VISITS_PER_S = 60
LIVE_S, FAST_LIVE_S = 6.0, 1.0
PATIENCE_S = 240.0
CHART_COLUMNS, CHART_ROWS = 72, 4
BLUE, GREEN, YELLOW = "#4a9fd8", "#2da44e", "#bf8700"


class Pipelines:
    """The two of them, beside what the shop has sent."""

    def __init__(self, folder: Path, shop: Shop) -> None:
        tables = ("lake/orders", "lake/orders__dlq")
        self.all = [Running(folder, ORDERS, tables=tables), Running(folder, CLICKS)]
        self._shop = shop

    def picture(self) -> Table:
        table = Table(box=None, padding=(0, 2))
        table.add_column("pipeline")
        table.add_column("state")
        for name in ("sent by the shop", "rows done", "batch", "rows/s", "lag"):
            table.add_column(name, justify="right")
        for pipeline in self.all:
            status = pipeline.status()
            state = str(status.get("state", "starting"))
            colour = {"running": "green", "starting": "yellow"}.get(state, "red")
            lag = status.get("lag")
            figures = (
                f"{self._shop.sent[pipeline.name]:,}",
                f"{pipeline.rows:,}",
                str(status.get("batch") or 0),
                f"{status.get('rows_per_second') or 0:,.0f}",
                "" if lag is None else f"{lag:,}",
            )
            table.add_row(pipeline.name, f"[{colour}]{state}[/{colour}]", *figures)
        return table

    def have_done(self, counts: Sequence[int]) -> bool:
        for pipeline in self.all:
            pipeline.check()
        return all(pipeline.rows >= count for pipeline, count in zip(self.all, counts, strict=True))

    def sent(self) -> list[int]:
        return [self._shop.sent[pipeline.name] for pipeline in self.all]

    def stop(self) -> None:
        for pipeline in self.all:
            pipeline.stop()


def a_broker(tour: Tour, broker: RunnelBroker, shop: Shop, visits: int) -> None:
    tour.chapter("A broker, two topics", "One process, no JVM; any Kafka client can connect to it.")
    tour.console.print(next(line for line in broker.logs.splitlines() if "is ready" in line))
    for topic in (ORDERS, CLICKS, COUNTED):
        tour.type("topic", "create", topic, "--partitions", "2", seconds=0.3)
    tour.say("A shop on the web sends what its visitors did since this time yesterday:")
    began = time.monotonic()
    with tour.console.status("visitors click, and some of them buy"):
        shop.send_a_day(visits)
    took_s = time.monotonic() - began
    tour.result(
        f"{shop.sent[CLICKS]:,} clicks and {shop.sent[ORDERS]:,} orders, sent in {took_s:.1f} s"
    )


def two_pipelines(tour: Tour, pipelines: Pipelines, shop: Shop) -> None:
    tour.chapter(
        "Two pipelines",
        "pipelines/orders.yml: JSON out of the topic orders into a Delta table, every 2 s;",
        "pipelines/clicks.yml: clicks counted by city in windows of ten minutes, back to a topic.",
    )
    for pipeline in pipelines.all:
        tour.show_command(pipeline.arguments)
        pipeline.start()
    shop.start()
    tour.say(
        "Spark starts (it brought its own Java, if there was none). Meanwhile, a look at the topic:"
    )
    look_at(tour, ORDERS)
    tour.say("The shop is open; both pipelines follow it:")
    sent = pipelines.sent()
    tour.watch(
        pipelines.picture, lambda: pipelines.have_done(sent), PATIENCE_S, "the first batches"
    )
    _go_on(tour, pipelines)


def an_accident(tour: Tour, broker: RunnelBroker, pipelines: Pipelines) -> None:
    tour.chapter(
        "An accident",
        "The broker is killed (kill -9) while the shop sends and both pipelines read and write,",
        "and started again on the same folder. Nobody else is told.",
    )
    broker.kill()
    tour.console.print("[bold red]killed[/bold red]")
    tour.pause(1)
    began = time.monotonic()
    broker.start()
    tour.result(f"ready again after {1000 * (time.monotonic() - began):.0f} ms")
    _go_on(tour, pipelines)


def _go_on(tour: Tour, pipelines: Pipelines) -> None:
    """For some seconds, and until all that was sent before them is done."""
    sent, until = pipelines.sent(), time.monotonic() + (FAST_LIVE_S if tour.fast else LIVE_S)
    tour.watch(
        pipelines.picture,
        lambda: pipelines.have_done(sent) and time.monotonic() > until,
        PATIENCE_S,
        "catching up",
    )


def closing(tour: Tour, shop: Shop, pipelines: Pipelines) -> None:
    tour.say("", "The shop closes; both pipelines finish what was sent, and are stopped.")
    shop.close()
    sent = pipelines.sent()
    tour.watch(pipelines.picture, lambda: pipelines.have_done(sent), PATIENCE_S, "the rest")
    pipelines.stop()


def picture(tour: Tour, shop: Shop, path: Path) -> None:
    tour.chapter("The day as a picture", "Clicks out of the topic, orders out of the table (UTC):")
    day = read_day(tour, shop)
    for name, colour, values in (
        ("clicks in 10 minutes", BLUE, day.clicks),
        ("orders in 10 minutes", GREEN, day.orders),
    ):
        tour.console.print(name, style="bold")
        for line in blocks(values, CHART_COLUMNS, CHART_ROWS):
            tour.console.print(line, style=colour)
    tour.console.print(hours(day.starts_ms, CHART_COLUMNS), style="dim")
    city, found = find_out(day)
    panels = [
        Panel("clicks in 10 minutes (topic clicks_by_city)", BLUE, day.clicks),
        Panel("orders in 10 minutes (Delta table)", GREEN, day.orders),
        Panel(f"orders from {city}", YELLOW, day.orders_of(city)),
    ]
    write_svg(path, svg("A day in the shop", day.starts_ms, panels, found))
    tour.result(f"What went wrong? {found.note}.")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    add = parser.add_argument
    add("--fast", action="store_true", help="without pauses, and with less data")
    add("--out", type=Path, default=Path("build/demo"), help="where the picture goes")
    add("--keep", action="store_true", help="keep the pipelines, the table and their state as well")
    add("--record", type=Path, help=argparse.SUPPRESS)  # the second half, as docs/img/demo.svg
    options = parser.parse_args()
    logging.getLogger("runnel.client").setLevel(logging.CRITICAL)  # we know that it was killed
    with ExitStack() as stack:
        folder = Path(tempfile.mkdtemp(prefix="runnel-demo-"))
        if not options.keep:
            stack.callback(shutil.rmtree, folder, ignore_errors=True)
        shutil.copytree(HERE / "pipelines", folder / "pipelines")
        broker = stack.enter_context(RunnelBroker({"runnel.durability": "interval"}))
        os.environ["RUNNEL_BOOTSTRAP_SERVER"] = broker.bootstrap_servers
        tour = Tour(folder, options.fast)
        shop = Shop(broker.bootstrap_servers, VISITS_PER_S)
        pipelines = Pipelines(folder, shop)
        stack.callback(pipelines.stop)
        a_broker(tour, broker, shop, FAST_VISITS if options.fast else VISITS)
        two_pipelines(tour, pipelines, shop)
        an_accident(tour, broker, pipelines)
        if options.record:
            tour.console.export_text(clear=True)  # the picture begins here
        closing(tour, shop, pipelines)
        account(tour, shop)
        ask(tour)
        picture(tour, shop, options.out / "shop.svg")
        tour.chapter(
            f"That was it, in {time.monotonic() - tour.began:.0f} s",
            f"  {options.out / 'shop.svg'}  the day as a picture, larger",
            "  examples/demo/pipelines/   the two files that did it, and one function",
            "  docs/pipelines/            every kind of pipeline: `runnel pipeline init --list`",
            "  make run                   a broker of your own on localhost:9092",
            f"The folder with the table is {folder}" if options.keep else "All else is gone again.",
        )
        if options.record:
            drawn = tour.console.export_svg(title="make demo")
            options.record.write_text(re.sub(r"\s*@font-face \{.*?\}", "", drawn, flags=re.DOTALL))


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # what was started is ended
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
    except RuntimeError as error:
        sys.exit(f"the demo stopped: {error}")
