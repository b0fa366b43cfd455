"""`runnel storage`: look into a data folder, with a broker at work in it or not.

Nothing is written and no lock is taken, so these can be run at any time, on Kafka's folders too.
"""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Final

import typer

from runnel.cli import analysis_views
from runnel.cli import storage_views as views
from runnel.cli.data_folders import (
    Folder,
    Topic,
    is_running,
    look,
    offset_range,
    segments_within,
)
from runnel.cli.output import (
    EXIT_FAILED,
    AsJson,
    CommandError,
    examples,
    note,
    progress,
    show_json,
    show_line,
)
from runnel.errors import RunnelError
from runnel.inspect.analyzing import Analysis, analyze_partition
from runnel.inspect.describing import describe_partition
from runnel.inspect.dumping import Range, dump_file
from runnel.inspect.folders import PartitionFiles, look_into
from runnel.inspect.freeing import Freed, freed_by
from runnel.inspect.kinds import Kinds, parse_by
from runnel.inspect.verifying import Finding, Verifier
from runnel.storage.checkpoints import LOG_STARTS
from runnel.storage.files import OsDisk

LOOK_AGAIN_S: Final = 0.05  # at an end that a broker is writing
FINDINGS_MAX: Final = 100_000
NO_LIMIT: Final = -1

app = typer.Typer(
    help="Look into a data folder of Runnel or Kafka, with the broker up or down.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["--help", "-h"]},
)


@app.command(
    epilog=examples(
        "runnel storage describe ./data",
        "runnel storage describe ./data orders --segments",
        "runnel storage describe ./data --json",
    )
)
def describe(
    folder: Folder,
    topic: Topic = None,
    segments: Annotated[
        bool, typer.Option("--segments", metavar="", help="A line for each segment.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Whose folder it is, how it was left, and what each partition holds."""
    disk = OsDisk(read_only=True)
    found, partitions = look(disk, folder, topic)
    starts = found.checkpoints[LOG_STARTS]
    described = [describe_partition(disk, p, starts.get(p.partition, 0)) for p in partitions]
    in_use = is_running(found.lock_pid)
    if as_json:
        show_json(views.folder_document(found, in_use, described))
        return
    views.show_folder(found, in_use, described)
    views.show_segments(described) if segments else views.show_partitions(described)


@app.command(
    epilog=examples(
        "runnel storage dump ./data orders-0",
        "runnel storage dump ./data orders-0 --deep --offsets 100:200",
        "runnel storage dump ./data/orders-0/00000000000000000000.timeindex --json",
    )
)
def dump(
    path: Annotated[
        Path, typer.Argument(help="A data folder, a partition's, or one file.", metavar="PATH")
    ],
    topic: Topic = None,
    deep: Annotated[
        bool, typer.Option("--deep", metavar="", help="The records of each batch too.")
    ] = False,
    offsets: Annotated[
        str, typer.Option(metavar="FROM:TO", help="From this offset up to, not with, the other.")
    ] = ":",
    as_json: AsJson = False,
) -> None:
    """Print the batches and records of a log, or the entries of any other file of a folder."""
    disk, only = OsDisk(read_only=True), offset_range(offsets)
    if path.is_dir():
        if topic is None and look_into(disk, str(path)).meta is not None:
            raise CommandError(f"Name the topic to dump: runnel storage dump {path} TOPIC.")
        _, partitions = look(disk, path, topic)
        files = [s.path() for p in partitions for s in segments_within(p, only)]
    elif path.is_file() and topic is None:
        files = [str(path)]
    else:
        raise CommandError(f"{path} is neither a folder nor a file: name one that is there.")
    for file in files:
        if len(files) > 1 and not as_json:
            show_line(file)
        _dump(disk, file, deep, only, as_json)


@app.command(
    epilog=examples(
        "runnel storage verify ./data",
        "runnel storage verify ./data orders-0 --deep",
    )
)
def verify(
    folder: Folder,
    topic: Topic = None,
    deep: Annotated[
        bool, typer.Option("--deep", metavar="", help="Decode every record too.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Check every batch, index and small file; a line and exit status 1 for what is wrong."""
    disk = OsDisk(read_only=True)
    found, partitions = look(disk, folder, topic)
    findings: list[Finding] = []

    def report(finding: Finding) -> None:
        if as_json and len(findings) < FINDINGS_MAX:
            findings.append(finding)
        elif not as_json:
            show_line(views.finding_line(finding))

    with progress("verifying", sum(p.log_bytes for p in partitions)) as advance:
        verifier = Verifier(
            disk, report, deep=deep, advance=advance, pause=lambda: time.sleep(LOOK_AGAIN_S)
        )
        checked = verifier.verify(found, partitions)
    if as_json:
        show_json(views.checked_document(checked, findings))
    else:
        show_line(views.checked_line(checked))
        if checked.findings and is_running(found.lock_pid):
            note(
                "A broker is at work here: what it recovers or deletes meanwhile may look damaged."
            )
    if checked.findings:
        raise typer.Exit(EXIT_FAILED)


@app.command(
    epilog=examples(
        "runnel storage analyze ./data orders",
        "runnel storage analyze ./data orders --by header:type",
        "runnel storage analyze ./data orders --by json:event.kind --plot orders.svg",
        "runnel storage analyze ./data --retention-ms 86400000",
    )
)
def analyze(
    folder: Folder,
    topic: Topic = None,
    by: Annotated[
        str | None,
        typer.Option(metavar="header:NAME|json:FIELD", help="Count kinds of messages by this."),
    ] = None,
    top: Annotated[int, typer.Option(min=1, max=10_000, help="How many kinds to show.")] = 20,
    retention_ms: Annotated[
        int, typer.Option(min=NO_LIMIT, help="What this retention.ms would free; -1: none.")
    ] = NO_LIMIT,
    retention_bytes: Annotated[
        int, typer.Option(min=NO_LIMIT, help="What this retention.bytes would free; -1: none.")
    ] = NO_LIMIT,
    plot: Annotated[
        Path | None, typer.Option(metavar="FILE.svg", help="Draw it into this file.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Messages, sizes, compression and kinds of what a folder holds, and what would be freed."""
    kinds = _kinds(by)
    if plot is not None and plot.suffix != ".svg":
        raise CommandError(f"A plot is written as SVG, which every browser shows: {plot.stem}.svg.")
    disk = OsDisk(read_only=True)
    _, partitions = look(disk, folder, topic)
    analyzed: list[tuple[PartitionFiles, Analysis]] = []
    done = 0
    with progress("analyzing", sum(p.log_bytes for p in partitions)) as advance:
        for files in partitions:
            analysis = analyze_partition(disk, files, kinds, _advance_from(done, advance))
            analyzed.append((files, analysis))
            done += files.log_bytes
    freed = None
    if retention_ms != NO_LIMIT or retention_bytes != NO_LIMIT:
        freed = [
            (files, _freed(analysis, retention_ms, retention_bytes)) for files, analysis in analyzed
        ]
    result = analysis_views.Analyzed(str(folder), analyzed, kinds, top, freed)
    if plot is not None:
        plot.write_text(analysis_views.plot(result))
        note(f"drawn into {plot}")
    if as_json:
        show_json(analysis_views.analysis_document(result))
    else:
        analysis_views.show_analysis(result)


def _dump(disk: OsDisk, path: str, deep: bool, only: Range, as_json: bool) -> None:
    show = show_json if as_json else views.show_row
    rows = dump_file(disk, path, deep=deep, only=only)
    try:
        for row in rows:
            show(row)
    except FileNotFoundError:
        note(f"{path} is gone: a retention or a deletion took it.")
    except BrokenPipeError:  # of our output, not of the file
        raise
    except (ValueError, OSError, RunnelError) as error:
        text = str(error)
        raise CommandError(text if path in text else f"{path}: {text}", EXIT_FAILED) from error


def _advance_from(done: int, advance: Callable[[float], None]) -> Callable[[int], None]:
    return lambda read: advance(done + read)


def _kinds(by: str | None) -> Kinds | None:
    if by is None:
        return None
    try:
        return Kinds(parse_by(by))
    except ValueError as error:
        raise CommandError(f"--by: {error}.") from None


def _freed(analysis: Analysis, retention_ms: int, retention_bytes: int) -> Freed:
    now_ms = time.time_ns() // 1_000_000
    return freed_by(
        analysis.segments,
        retention_ms=retention_ms,
        retention_bytes=retention_bytes,
        now_ms=now_ms,
    )
