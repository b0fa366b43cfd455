"""`runnel produce`: send lines, JSON objects or a whole file to a topic."""

import errno
import os
import sys
import time
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from runnel.cli.connecting import connected, told
from runnel.cli.moments import time_of
from runnel.cli.output import (
    DEFAULT_BOOTSTRAP,
    EXIT_FAILED,
    Advance,
    AsJson,
    Bootstrap,
    CommandError,
    examples,
    note,
    progress,
    sentence,
    show_json,
)
from runnel.cli.record_input import (
    Entry,
    Template,
    entry_of_json,
    entry_of_line,
    entry_of_whole,
    lines_of,
    whole_of,
)
from runnel.client.cluster import RefusedError
from runnel.client.sending import Sender, Sent
from runnel.native.compression import Compression


class Format(StrEnum):
    LINES = "lines"
    JSON = "json"
    RAW = "raw"


class Codec(StrEnum):
    NONE = "none"
    GZIP = "gzip"
    SNAPPY = "snappy"
    LZ4 = "lz4"
    ZSTD = "zstd"


class Acks(StrEnum):
    ALL = "all"
    ONE = "1"
    ZERO = "0"


ACKS = {Acks.ALL: -1, Acks.ONE: 1, Acks.ZERO: 0}
PRODUCE_EXAMPLES = examples(
    "echo hello | runnel produce orders",
    "printf 'k1:one\\nk2:two\\n' | runnel produce orders --key-separator :",
    "runnel produce orders --file orders.jsonl --format json --compression zstd",
    "runnel produce pictures --file cat.png --format raw --key cat --header type=image/png",
)


def produce(
    topic: Annotated[str, typer.Argument(metavar="TOPIC", help="Where to send the records.")],
    file: Annotated[
        Path | None,
        typer.Option("--file", "-F", metavar="PATH", help="Read this instead of standard input."),
    ] = None,
    how: Annotated[
        Format,
        typer.Option(
            "--format",
            "-f",
            help="A record per line, a JSON object per line, or all of the input as one record.",
        ),
    ] = Format.LINES,
    key: Annotated[
        str | None, typer.Option("--key", "-k", metavar="KEY", help="The key of every record.")
    ] = None,
    key_separator: Annotated[
        str | None,
        typer.Option(
            "--key-separator", "-K", metavar="TEXT", help="What stands between key and value."
        ),
    ] = None,
    header: Annotated[
        list[str] | None,
        typer.Option(
            "--header", "-H", metavar="NAME=VALUE", help="A header of every record; repeatable."
        ),
    ] = None,
    timestamp: Annotated[
        str | None,
        typer.Option(
            "--timestamp",
            metavar="TIME",
            help="Of every record: 2026-01-31T12:00, -5m, or @ and milliseconds. Else now.",
        ),
    ] = None,
    partition: Annotated[
        int | None, typer.Option("--partition", "-p", min=0, help="Send all to this partition.")
    ] = None,
    null: Annotated[
        str | None,
        typer.Option("--null", metavar="TEXT", help="A value or key of this text is null."),
    ] = None,
    compression: Annotated[
        Codec, typer.Option("--compression", "-z", help="How the batches are compressed.")
    ] = Codec.NONE,
    acks: Annotated[
        Acks, typer.Option("--acks", help="Who has to have a record before it counts as sent.")
    ] = Acks.ALL,
    bootstrap_server: Bootstrap = DEFAULT_BOOTSTRAP,
    as_json: AsJson = False,
) -> None:
    """Send records from standard input or a file; says how many at the end.

    What is typed or piped in is sent as soon as no more is waiting to be read.
    """
    if key is not None and key_separator is not None:
        raise CommandError("--key and --key-separator contradict each other: leave one out.")
    if key_separator == "":
        raise CommandError("--key-separator must not be empty.")
    if key_separator is not None and how != Format.LINES:
        raise CommandError(f"--key-separator is for lines, not for --format {how}.")
    template = Template(
        key=None if key is None else os.fsencode(key),
        headers=_headers(header or []),
        timestamp_ms=None if timestamp is None else _timestamp(timestamp),
        partition=partition,
        key_separator=None if key_separator is None else os.fsencode(key_separator),
        null=None if null is None else os.fsencode(null),
    )
    fd, size_bytes = _opened(file)
    if os.isatty(fd):
        note("a record per line; Ctrl-D ends" if how != Format.RAW else "Ctrl-D ends the record")
    started = time.monotonic()
    with connected(bootstrap_server) as cluster:
        sender = Sender(cluster, topic, codec=Compression[compression.upper()], acks=ACKS[acks])
        try:
            with progress(f"sending to {topic}", size_bytes) as advance:
                _send(_entries(fd, how, template), sender, advance)
            sender.flush()
        except (CommandError, RefusedError) as error:
            raise _stopped(error, sender) from None
    _tell(topic, sender.sent, time.monotonic() - started, as_json)


def _stopped(error: CommandError | RefusedError, sender: Sender) -> CommandError:
    """Sends what stands before what was refused, and says how much has been sent in all."""
    failure = told(error) if isinstance(error, RefusedError) else error
    sender.flush()
    sent = sender.sent.records
    if not sent:
        return failure
    return CommandError(f"{sentence(str(failure))} Sent before it: {_records(sent)}.", EXIT_FAILED)


def _send(entries_read: Iterator[list[Entry]], sender: Sender, advance: Advance) -> None:
    for entries in entries_read:
        for record, partition in entries:
            if record.timestamp < 0:
                record = record._replace(timestamp=time.time_ns() // 1_000_000)
            sender.add(record, partition)
        if not entries:
            sender.flush()
        advance(sender.sent.size_bytes)


def _entries(fd: int, how: Format, template: Template) -> Iterator[list[Entry]]:
    """Empty when nothing more is to be read just now: time to send what has gathered."""
    if how == Format.RAW:
        yield [entry_of_whole(whole_of(fd), template)]
        return
    parse = entry_of_json if how == Format.JSON else entry_of_line
    number = 0
    for lines in lines_of(fd):
        entries = []
        for line in lines:
            number += 1
            if how == Format.JSON and not line.strip():
                continue
            try:
                entries.append(parse(line, number, template))
            except CommandError:
                yield entries
                raise
        if entries or not lines:
            yield entries


def _opened(file: Path | None) -> tuple[int, int | None]:
    """Descriptor to read from, and how many bytes there are if that is known."""
    if file is None:
        if sys.stdin is None:
            raise CommandError("There is no standard input to read: name a file with --file.")
        return sys.stdin.fileno(), None
    try:
        if file.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        fd = os.open(file, os.O_RDONLY)
        return fd, os.fstat(fd).st_size
    except OSError as error:
        raise CommandError(f"{file}: {error.strerror}. Name a file that can be read.") from None


def _headers(texts: list[str]) -> list[tuple[str, bytes | None]]:
    """A name may be given more than once: Kafka keeps all."""
    pairs: list[tuple[str, bytes | None]] = []
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise CommandError(f"--header wants NAME=VALUE, not {text!r}.")
        pairs.append((name, os.fsencode(value)))
    return pairs


def _timestamp(text: str) -> int:
    found = time_of(text, time.time_ns() // 1_000_000)
    if found is None or found < 0:
        raise CommandError(
            f"--timestamp: {text!r} is no time; write 2026-01-31T12:00, -5m or @1767225600000."
        )
    return found


def _tell(topic: str, sent: Sent, seconds: float, as_json: bool) -> None:
    if as_json:
        show_json(
            {
                "topic": topic,
                "records": sent.records,
                "bytes": sent.size_bytes,
                "seconds": round(seconds, 3),
                "next_offsets": {
                    str(at): sent.next_offsets[at] for at in sorted(sent.next_offsets)
                },
            }
        )
        return
    note(
        f"sent {_records(sent.records)}, {sent.size_bytes:,} bytes in {seconds:.2f} s"
        f" ({sent.records / max(seconds, 1e-3):,.0f} a second)"
    )


def _records(count: int) -> str:
    return "1 record" if count == 1 else f"{count:,} records"
