"""`runnel logs search`: lines by words, time, level, service and field, with context."""

from typing import TYPE_CHECKING, Annotated, Final

import typer

from runnel.cli.connecting import NoBrokerError
from runnel.cli.log_options import (
    DataFolder,
    Field,
    IndexFolder,
    Level,
    Service,
    Since,
    Topic,
    Until,
    failures_told,
    filters_of,
    index_of,
    opened_source,
)
from runnel.cli.log_view import Printer
from runnel.cli.output import (
    DEFAULT_BOOTSTRAP,
    AsJson,
    Bootstrap,
    examples,
    note,
    progress,
)

if TYPE_CHECKING:
    from runnel.logs.search import Searched

LIMIT: Final = 100
LIMIT_MAX: Final = 1_000_000
CONTEXT_MAX: Final = 1000
SEARCH_EXAMPLES: Final = examples(
    "runnel logs search app-logs 'payment failed'",
    "runnel logs search app-logs 'payment failed' --level error --since 2h -C 3",
    "runnel logs search app-logs 'user=7 -retry' --service billing --json",
    "runnel logs search app-logs '\"connection reset\" /db-\\d+/' --limit 20",
    "runnel logs search app-logs timeout --data-dir ./data",
)


def search(
    topic: Topic,
    query: Annotated[
        str,
        typer.Argument(
            metavar="[QUERY]",
            help='All of these words. "a phrase", begin*, -not, /regular expression/ (RE2).',
        ),
    ] = "",
    level: Level = None,
    service: Service = None,
    field: Field = None,
    since: Since = None,
    until: Until = None,
    context: Annotated[
        int,
        typer.Option(
            "--context", "-C", min=0, max=CONTEXT_MAX, help="Lines before and after each."
        ),
    ] = 0,
    before: Annotated[
        int | None, typer.Option("--before", "-B", min=0, max=CONTEXT_MAX, help="Lines before.")
    ] = None,
    after: Annotated[
        int | None, typer.Option("--after", "-A", min=0, max=CONTEXT_MAX, help="Lines after.")
    ] = None,
    limit: Annotated[
        int, typer.Option("--limit", "-n", min=1, max=LIMIT_MAX, help="The newest so many.")
    ] = LIMIT,
    index: IndexFolder = None,
    no_index: Annotated[
        bool, typer.Option("--no-index", metavar="", help="Read the topic itself, all of it.")
    ] = False,
    data_dir: DataFolder = None,
    bootstrap_server: Bootstrap = DEFAULT_BOOTSTRAP,
    as_json: AsJson = False,
) -> None:
    """Find lines of logs: in the index of a topic, and in the topic what the index lacks.

    Shows the newest that match, in the order of their time. Without an index (see 'runnel logs
    index') the topic is read from its end. If no broker answers, the index alone is searched.
    """
    filters = filters_of(query, level, service, field, since, until)
    around = (context if before is None else before, context if after is None else after)
    from runnel.logs.search import search as find

    here = None if no_index else index_of(index, topic)
    used = here if here is not None and here.exists else None
    offline = ""
    with progress(f"searching {topic}", None) as advance:
        try:
            with opened_source(topic, bootstrap_server, data_dir) as source:
                found = find(
                    filters, index=used, source=source, limit=limit, context=around, advance=advance
                )
        except NoBrokerError as error:
            if used is None:
                raise
            offline = str(error).partition(". ")[0]
            with failures_told():
                found = find(filters, index=used, source=None, limit=limit, context=around)
    printer = Printer(topic, as_json=as_json)
    if any(around):
        for at, group in enumerate(found.groups):
            printer.show_group(group, is_first=at == 0)
    else:
        for hit in found.hits:
            printer.show(hit.record, hit.line)
    if offline:
        note(f"only the index was searched: {offline}")
    note(_summary(found))


def _summary(found: "Searched") -> str:
    """What was searched, and how long it took."""
    count = len(found.hits)
    lines = f"{count:,} line{'' if count == 1 else 's'}"
    if found.is_cut:
        lines = f"the newest {lines} (--limit shows more)"
    parts = []
    if found.indexed_lines:
        parts.append(f"{found.indexed_lines:,} indexed")
    if found.to_scan or not parts:
        read = f"{found.scanned:,} read from the topic"
        if found.scanned < found.to_scan:
            read += f" of {found.to_scan:,}"
        parts.append(read)
    return f"{lines} in {' and '.join(parts)}, {found.seconds:.2f} s"
