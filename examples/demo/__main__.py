"""A tour of Runnel in your terminal: about three minutes, nothing left behind.

`make demo`, or `make demo ARGS=--fast` for fast readers. It starts a broker on a free port
and a temporary folder, types `runnel` commands for you, lets a shop and its kitchen work, kills the
broker in the middle of it, and counts whether anything was lost. Ctrl-C ends it at any time.
"""

import argparse
import logging
import os
import shlex
import sys
import time
from contextlib import nullcontext

from kitchen import Cook, Shop, lags
from rich.console import Console
from rich.live import Live
from rich.table import Table

from runnel.cli.app import main as runnel_command
from runnel.client.group_lag import Lag
from runnel.testing import RunnelBroker

REFRESH_S = 0.25
PATIENCE_S = 60.0
BAR_WIDTH = 30


class Tour:
    """What is said, typed and shown; `fast` leaves the pauses out."""

    def __init__(self, broker: RunnelBroker, fast: bool) -> None:
        self.broker = broker
        self.fast = fast
        self.console = Console(highlight=False)

    def chapter(self, title: str, *lines: str) -> None:
        self.console.print()
        self.console.rule(f"[bold cyan]{title}", align="left")
        self.say(*lines)

    def say(self, *lines: str) -> None:
        for line in lines:
            self.console.print(f"[dim]{line}[/dim]")
        self.pause(1.5 * len(lines))

    def pause(self, seconds: float) -> None:
        sys.stdout.flush()
        if not self.fast:
            time.sleep(seconds)

    def type(self, command: str, seconds: float = 4.0) -> None:
        """Show a command and run it, in this process: it is the same code."""
        self.console.print(f"\n[green]$ runnel {command}[/green]", soft_wrap=True)
        self.pause(1)
        status = runnel_command(shlex.split(command))
        assert status == 0, f"it ended with {status}"
        self.pause(seconds)

    def watch(self, seconds: float, cooks: int = 0) -> None:
        """The kitchen at work, and until so many cooks have something to do.

        A picture that changes; where nobody watches, only the last one.
        """
        began, rows = time.monotonic(), lags(self.broker.bootstrap_servers)
        shown = Live(console=self.console, auto_refresh=False)
        with shown if self.console.is_terminal else nullcontext():
            while not self._seen(time.monotonic() - began, seconds, rows, cooks):
                time.sleep(REFRESH_S)
                rows = lags(self.broker.bootstrap_servers)
                if self.console.is_terminal:
                    shown.update(self._kitchen(rows), refresh=True)
        if not self.console.is_terminal:
            self.console.print(self._kitchen(rows))

    def _seen(self, passed_s: float, seconds: float, rows: list[Lag], cooks: int) -> bool:
        enough = min(seconds, 1.0) if self.fast else seconds
        owners = {row.owner.client_id for row in rows if row.owner is not None}
        return passed_s > PATIENCE_S or (passed_s > enough and len(owners) >= cooks)

    def _kitchen(self, rows: list[Lag]) -> Table:
        table = Table(box=None, padding=(0, 2))
        for name in ("partition", "records", "done", "waiting"):
            table.add_column(name, justify="right")
        table.add_column(width=BAR_WIDTH)
        table.add_column("cook")
        for row in rows:
            waiting = (row.end or 0) - (row.committed or 0)
            bar = "█" * min(BAR_WIDTH, (waiting + 4) // 5)
            owner = row.owner.client_id if row.owner is not None else "-"
            colour = "red" if waiting > 50 else "yellow" if waiting else "green"
            numbers = (row.partition, row.end or 0, row.committed or 0, waiting)
            table.add_row(*map(str, numbers), f"[{colour}]{bar}", owner)
        return table


def first_steps(tour: Tour) -> None:
    tour.chapter(
        "A broker",
        "One process, no JVM, nothing to configure. This one has just been started by",
        "[green]runnel serve --port 0[/green]; any Kafka client in any language can connect to it.",
    )
    print(next(line for line in tour.broker.logs.splitlines() if "is ready" in line))
    tour.pause(4)
    tour.chapter("A topic", "A log in four parts. Records with the same key stay in order.")
    tour.type("topic create orders --partitions 4")
    tour.type("topic describe orders")


def work(tour: Tour, shop: Shop, cooks: list[Cook]) -> None:
    tour.chapter(
        "A shop and its kitchen",
        "A shop sends a hundred orders a second. One cook prepares forty.",
        "What is sent and not done yet is the group's lag:",
    )
    shop.start()
    cooks[0].start()
    tour.watch(15, cooks=1)
    tour.say("Two more cooks join the group, which shares its partitions anew by itself:")
    for cook in cooks[1:]:
        cook.start()
    tour.watch(20, cooks=3)
    tour.type("group describe kitchen", 6)


def accident(tour: Tour, shop: Shop, cooks: list[Cook]) -> None:
    tour.chapter(
        "An accident",
        "The broker is killed (kill -9) while the shop sends and the cooks work,",
        "and started again on the same folder. Clients wait and go on by themselves.",
    )
    tour.broker.kill()
    tour.console.print("[red]killed[/red]")
    tour.pause(2)
    began = time.monotonic()
    tour.broker.start()
    print(f"ready again after {1000 * (time.monotonic() - began):.0f} ms")
    tour.watch(10, cooks=3)
    shop.stop()
    tour.say("The shop closes; the cooks finish what was ordered.")
    give_up = time.monotonic() + PATIENCE_S
    while lost := shop.acknowledged - set().union(*(cook.done for cook in cooks)):
        if time.monotonic() > give_up:
            break
        time.sleep(REFRESH_S)
    for cook in cooks:
        cook.stop()
    print(f"orders acknowledged: {len(shop.acknowledged):,}, lost: {len(lost)}")
    assert not lost, "this must not happen; please tell us"
    tour.pause(4)


def on_the_disk(tour: Tour) -> None:
    folder = tour.broker.data_dir
    tour.chapter("On the disk", "Kafka's own log format, which can be looked into at any time.")
    tour.type(f"storage verify {folder} orders")
    tour.type(f"storage analyze {folder} orders --by json:dish", 8)
    tour.chapter("Housekeeping", "Every setting of a topic can be changed while it is used.")
    tour.type("topic alter orders --config retention.ms=86400000 --config compression.type=zstd")
    tour.type("group delete kitchen --yes", 2)
    tour.type("topic delete orders --yes", 2)


def main() -> None:
    parser = argparse.ArgumentParser(description="A tour of Runnel in three minutes.")
    parser.add_argument("--fast", action="store_true", help="without pauses, in a few seconds")
    options = parser.parse_args()
    logging.getLogger("runnel.client").setLevel(logging.CRITICAL)  # we know that it was killed
    with RunnelBroker({"runnel.durability": "interval"}) as broker:
        os.environ["RUNNEL_BOOTSTRAP_SERVER"] = servers = broker.bootstrap_servers
        tour = Tour(broker, options.fast)
        first_steps(tour)
        shop, cooks = Shop(servers), [Cook(servers, number) for number in (1, 2, 3)]
        work(tour, shop, cooks)
        accident(tour, shop, cooks)
        on_the_disk(tour)
    tour.chapter(
        "That was it",
        "The broker has stopped and its folder is gone. Go on with",
        "  [green]make run[/green]           a broker of your own on localhost:9092",
        "  [green]examples/README.md[/green]  small programs, from hello world to exactly-once",
    )


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
