"""`runnel sql`: SQL over topics and lake tables, one statement or a shell."""

import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from runnel.cli.figures import size_text
from runnel.cli.moments import duration_ms
from runnel.cli.output import (
    DEFAULT_BOOTSTRAP,
    EXIT_FAILED,
    EXIT_REFUSED,
    AsJson,
    CommandError,
    examples,
    note,
)

SQL_EXAMPLES: Final = examples(
    "runnel sql 'select count(*) from orders'",
    "runnel sql 'select user, sum(amount) from orders group by 1 order by 2 desc limit 10'",
    "runnel sql \"select * from orders where timestamp > now() - interval '1 hour'\" --format csv",
    "runnel sql 'from \"web-clicks\" limit 5' --path ./data",
    "runnel sql 'select * from orders join customers using (id)' --lake customers=./lake/customers",
    "runnel sql 'select * from orders' --schema orders='id BIGINT, cost DOUBLE' -o orders.parquet",
    "runnel sql                                            # a shell",
)
UNBOUNDED: Final = "unbounded"
MEMORY_LEAST_BYTES: Final = 64 << 20
MEMORY_UNITS: Final = {"k": 10, "m": 20, "g": 30, "t": 40}


def sql(
    statement: Annotated[
        str | None,
        typer.Argument(
            metavar="[STATEMENT]",
            help="What to run; '-' takes it from standard input. Else a shell.",
        ),
    ] = None,
    bootstrap: Annotated[
        str | None,
        typer.Option(
            "--bootstrap-server",
            "-b",
            envvar="RUNNEL_BOOTSTRAP_SERVER",
            metavar="HOST:PORT",
            help=f"Any broker of the cluster; several with commas. Default {DEFAULT_BOOTSTRAP}.",
        ),
    ] = None,
    path: Annotated[
        str | None,
        typer.Option(
            "--path",
            metavar="FOLDER",
            help="Read this data folder (log.dirs) without asking a broker.",
        ),
    ] = None,
    schema: Annotated[
        list[str] | None,
        typer.Option(
            "--schema",
            metavar="TOPIC=COLUMNS",
            help="Columns of a topic of JSON, such as orders='id BIGINT, tags VARCHAR[]'; else they"
            " are told from some of its records. Can be repeated.",
        ),
    ] = None,
    registry: Annotated[
        str | None,
        typer.Option(
            "--registry",
            envvar="RUNNEL_SCHEMA_REGISTRY",
            metavar="URL",
            help="A schema registry, for values of Avro or JSON that name their schema.",
        ),
    ] = None,
    lake: Annotated[
        list[str] | None,
        typer.Option(
            "--lake",
            metavar="NAME=FOLDER",
            help="A Delta, Iceberg or Parquet table as a relation of this name. Can be repeated.",
        ),
    ] = None,
    how: Annotated[
        str | None,
        typer.Option(
            "--format",
            "-f",
            metavar="FORMAT",
            help="table, csv, json (one object a line) or parquet.",
        ),
    ] = None,
    as_json: AsJson = False,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="FILE", help="Where to write; its ending says the format."
        ),
    ] = None,
    limit_rows: Annotated[
        int,
        typer.Option("--limit-rows", min=0, metavar="N", help="Rows of a table; 0 for all."),
    ] = 1000,
    read_uncommitted: Annotated[
        bool,
        typer.Option(
            "--read-uncommitted",
            metavar="",
            help="With the records of transactions that were aborted or are open.",
        ),
    ] = False,
    disorder: Annotated[
        str,
        typer.Option(
            "--timestamp-disorder",
            metavar="SPAN",
            help="How much older than those before it a record may be, for conditions on"
            f" timestamp; {UNBOUNDED!r} reads to the end of the topic.",
        ),
    ] = "2m",
    memory: Annotated[
        str | None,
        typer.Option(
            "--memory", metavar="SIZE", help="What DuckDB may use, as 2g; else a quarter of all."
        ),
    ] = None,
    threads: Annotated[
        int | None, typer.Option("--threads", min=1, max=256, help="Else one for each core.")
    ] = None,
    stats: Annotated[
        bool, typer.Option("--stats", metavar="", help="Tell what was read, and how long it took.")
    ] = False,
) -> None:
    """Query topics with SQL: a topic is a relation by its name, a field of its values a column."""
    from runnel.cli.sql_output import format_of, write
    from runnel.cli.sql_running import Watched

    how = format_of("json" if as_json else how, output)
    if statement is None and output is not None:
        raise CommandError("--output takes the rows of one statement: write it, or '-' to pipe it.")
    if statement == "-":
        statement = sys.stdin.read()
    if bootstrap is None and path is None:
        bootstrap = DEFAULT_BOOTSTRAP
    settings: dict[str, Any] = {
        "path": path,
        "schemas": _pairs("--schema", "orders='id BIGINT'", schema or ()),
        "registry": registry,
        "lakes": _pairs("--lake", "orders=./lake/orders", lake or ()),
        "read_committed": not read_uncommitted,
        "timestamp_disorder_ms": None
        if disorder == UNBOUNDED
        else duration_ms("--timestamp-disorder", disorder),
        "memory_limit_bytes": _memory_bytes(memory),
        "threads": threads,
    }
    with telling():
        from runnel.query.connection import Connection

        with Connection(None if path else bootstrap, **settings) as connection:
            if statement is None:
                from runnel.cli.sql_shell import Shell

                raise typer.Exit(Shell(connection, how, limit_rows).run())
            watched = Watched(connection)
            try:
                result = watched.result(statement)
                rows = 0
                if result.has_rows:
                    with closing(watched.batches(result)) as batches:  # though `head` has enough
                        rows = write(batches, result.columns, how, output, limit_rows)
                for remark in result.notes:
                    note(f"note: {remark}")
                if stats:
                    note(watched.stats(result, rows))
            finally:
                watched.close()


@contextmanager
def telling() -> Iterator[None]:
    """What is wrong with a statement is told as DuckDB does, with a caret under the place.

    Raises CommandError, typer.Exit.
    """
    from runnel.query.errors import FailedError, QueryError

    try:
        yield
    except FailedError as error:
        raise CommandError(option_words(str(error)), EXIT_FAILED) from None
    except QueryError as error:
        if "\n" not in str(error):
            raise CommandError(str(error)) from None
        note(f"runnel: {error}")
        raise typer.Exit(EXIT_REFUSED) from None


def option_words(text: str) -> str:
    """The options of this command instead of those of Spark's source."""
    return text.replace("kafka.bootstrap.servers=", "--bootstrap-server ").replace(
        "path=", "--path "
    )


def _pairs(option: str, example: str, texts: Iterable[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name.strip() or not value.strip():
            raise CommandError(f"{option} {text!r}: write it as {example}.")
        found[name.strip()] = value.strip()
    return found


def _memory_bytes(text: str | None) -> int | None:
    if text is None:
        return None
    match = re.fullmatch(r"(\d{1,6}(?:\.\d{1,3})?)\s*([kmgt])i?b?", text.strip().lower())
    size = int(float(match[1]) * (1 << MEMORY_UNITS[match[2]])) if match else 0
    if size < MEMORY_LEAST_BYTES:
        least = size_text(MEMORY_LEAST_BYTES)
        raise CommandError(f"--memory {text}: write a size from {least} on, such as 512m or 2g.")
    return size
