"""Options that `runnel logs tail` and `runnel logs search` share, and what they mean."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from runnel.cli.connecting import connected, told
from runnel.cli.moments import duration_ms, time_of
from runnel.cli.output import EXIT_FAILED, CommandError
from runnel.cli.pairs import assignments

if TYPE_CHECKING:
    from runnel.logs.filters import Filters
    from runnel.logs.index import Index
    from runnel.logs.topics import Source

LEVEL_NAMES: Final = ("trace", "debug", "info", "warning", "error", "critical")

Topic = Annotated[str, typer.Argument(metavar="TOPIC", help="The topic that the logs are in.")]
Level = Annotated[
    str | None,
    typer.Option(
        "--level", "-l", metavar="LEVEL", help=f"At least this: {', '.join(LEVEL_NAMES)}."
    ),
]
Service = Annotated[
    list[str] | None,
    typer.Option("--service", "-s", metavar="NAME", help="Only of this service; can be repeated."),
]
Field = Annotated[
    list[str] | None,
    typer.Option(
        "--field",
        "-F",
        metavar="NAME=VALUE",
        help="Only with this field, http.status=500 where they are nested; can be repeated.",
    ),
]
Since = Annotated[
    str | None,
    typer.Option(
        "--since", metavar="TIME", help="Not older than this: 2h, 30m, or 2026-01-31T12:00."
    ),
]
Until = Annotated[
    str | None, typer.Option("--until", metavar="TIME", help="Older than this; as --since.")
]
DataFolder = Annotated[
    Path | None,
    typer.Option(
        "--data-dir",
        metavar="FOLDER",
        help="Read a broker's data folder instead of asking one; the broker may be down.",
    ),
]
IndexFolder = Annotated[
    Path | None,
    typer.Option(
        "--index",
        metavar="FOLDER",
        envvar="RUNNEL_LOG_INDEX",
        help="Where indexes are, one folder per topic.  [default: .runnel/logs]",
    ),
]


def filters_of(
    text: str,
    level: str | None,
    services: Sequence[str] | None,
    fields: Sequence[str] | None,
    since: str | None,
    until: str | None = None,
) -> "Filters":
    """Raises CommandError."""
    from runnel.logs.filters import Filters
    from runnel.logs.lines import LEVELS, level_of
    from runnel.logs.query import QueryError, parse

    named = None if level is None else level_of(level)
    if named is not None and named not in LEVELS:
        raise CommandError(f"--level: {level!r} is none; write one of {', '.join(LEVEL_NAMES)}.")
    try:
        query = parse(text)
    except QueryError as error:
        raise CommandError(f"{error}.") from None
    since_ms, until_ms = _moment("--since", since), _moment("--until", until)
    if since_ms is not None and until_ms is not None and since_ms >= until_ms:
        raise CommandError("--since is not before --until: there is no time between them.")
    return Filters(
        query, named, tuple(services or ()), assignments("--field", fields), since_ms, until_ms
    )


@contextmanager
def failures_told() -> Iterator[None]:
    """Raises CommandError for all that goes wrong with topic, folder or index in the block."""
    from runnel.arrow.errors import SourceError
    from runnel.arrow.losses import ReadError
    from runnel.arrow.offline import OfflineError
    from runnel.client.cluster import ClientError
    from runnel.logs.segment import LogIndexError

    try:
        yield
    except (OfflineError, SourceError) as error:
        raise CommandError(f"{error}.") from None
    except (ReadError, LogIndexError) as error:
        raise CommandError(f"{error}.", EXIT_FAILED) from None
    except ClientError as error:
        raise told(error) from None
    except BrokenPipeError:  # of who reads our output: no failure
        raise
    except OSError as error:
        name = f"{error.filename}: " if error.filename else ""
        raise CommandError(f"{name}{error.strerror or error}.", EXIT_FAILED) from None


@contextmanager
def opened_source(topic: str, bootstrap: str, folder: Path | None) -> "Iterator[Source]":
    """The topic by its broker, or in a folder. Raises CommandError, as `failures_told`."""
    from runnel.logs.topics import BrokerSource, FolderSource

    with failures_told():
        if folder is not None:
            yield FolderSource(str(folder), topic)
            return
        with connected(bootstrap) as cluster:
            yield BrokerSource(cluster, bootstrap, topic)


def index_of(folder: Path | None, topic: str) -> "Index":
    from runnel.logs.index import DEFAULT_FOLDER, Index

    return Index(folder or Path(DEFAULT_FOLDER), topic)


def _moment(option: str, text: str | None) -> int | None:
    """A time, or how long ago, with or without a minus."""
    if text is None:
        return None
    now_ms = time.time_ns() // 1_000_000
    found = time_of(text.strip(), now_ms)
    if found is not None:
        return found
    try:
        return now_ms - duration_ms(option, text)
    except CommandError:
        raise CommandError(
            f"{option}: {text!r} is no time; write 2h, 30m, 7d, or 2026-01-31T12:00."
        ) from None
