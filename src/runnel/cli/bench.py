"""`runnel bench`: load a broker that already runs, and tell how fast it is.

For any broker that speaks Kafka's protocol. The figures depend on the machine that the load shares
with the broker or reaches it from; `make bench` in the source tree compares two brokers in turn.
"""

import argparse
import json
import os
import sys
from collections.abc import Generator, Sequence
from contextlib import closing

from runnel.bench.pipeline import LoadError
from runnel.bench.suite import Line, Size, measure
from runnel.cli.logs import printable
from runnel.cli.output import EXIT_FAILED, CommandError
from runnel.client.raw import Address, ClosedError

DEFAULT_ADDRESS = "127.0.0.1:9092"
SIZE = Size(seconds=3.0, megabytes=500, samples=3000)
NAME_WIDTH, VALUE_WIDTH, UNIT_WIDTH = 36, 12, 12


def address_of(text: str) -> Address:
    host, colon, port = text.partition(",")[0].strip().rpartition(":")
    if not colon or not host:
        raise argparse.ArgumentTypeError(f"{text!r} is not HOST:PORT")
    try:
        return host.strip("[]"), int(port)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{port!r} is no port") from None


def positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("at least 1")
    return number


def arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="runnel bench",
        description="Load a running broker with pre-encoded requests and tell how fast it is."
        " Makes topics named bench-... on it and deletes them.",
    )
    add = parser.add_argument
    add(
        "-b",
        "--bootstrap-server",
        type=address_of,
        default=os.environ.get("RUNNEL_BOOTSTRAP_SERVER", DEFAULT_ADDRESS),
        metavar="HOST:PORT",
        help=f"else RUNNEL_BOOTSTRAP_SERVER, or {DEFAULT_ADDRESS}",
    )
    add("--seconds", type=float, default=SIZE.seconds, help=f"per measure ({SIZE.seconds})")
    add("--megabytes", type=positive, default=SIZE.megabytes, help=f"to write ({SIZE.megabytes})")
    add("--samples", type=positive, default=SIZE.samples, help=f"of a latency ({SIZE.samples})")
    add("--json", action="store_true", help="a JSON object per line, for programs")
    return parser


def main(argv: Sequence[str]) -> int:
    options = arguments().parse_args(argv)
    size = Size(options.seconds, options.megabytes, options.samples)
    with closing(_measured(options.bootstrap_server, size)) as lines:  # its topics go with it
        for line in lines:
            sys.stdout.write(json.dumps(line._asdict()) if options.json else shown(line))
            sys.stdout.write("\n")
            sys.stdout.flush()
    return 0


def _measured(address: Address, size: Size) -> Generator[Line, None, None]:
    """Apart from who prints them: an error of the output is none of the broker."""
    try:
        yield from measure(address, size)
    except (LoadError, ClosedError, OSError) as error:
        host, port = address
        raise CommandError(f"{host}:{port}: {printable(str(error))}", EXIT_FAILED) from error


def shown(line: Line) -> str:
    value = f"{line.value:,.0f}" if line.value >= 100 else f"{line.value:.1f}"
    busy = "" if line.busy is None else f"load generator {line.busy:.0%} busy"
    columns = f"{line.measure:<{NAME_WIDTH}}{value:>{VALUE_WIDTH}} {line.unit:<{UNIT_WIDTH}}{busy}"
    return columns.rstrip()
