"""`runnel pipeline replay`: a table's rows back to a topic."""

import signal
from pathlib import Path
from typing import TYPE_CHECKING

from runnel.cli.output import DEFAULT_BOOTSTRAP, note, progress, show_json, show_line
from runnel.cli.pipeline_files import home_of
from runnel.cli.pipeline_tables import failing, lake_of, table_folder, time_of, with_table

if TYPE_CHECKING:
    from runnel.pipelines.home import Home
    from runnel.pipelines.replaying import Replayer
    from runnel.spark.lake.lake_options import LakeOptions


def replay(
    given: str,
    topic: str,
    bootstrap: str | None,
    from_: str | None,
    until: str | None,
    rate: float,
    state_dir: Path | None,
    *,
    keep_partitions: bool,
    as_json: bool,
) -> None:
    from runnel.pipelines.replaying import Replay, Replayer

    table, home, name, its_broker = _table(given, state_dir)
    times = time_of("--from", from_), time_of("--until", until)
    where = bootstrap or its_broker
    written = f"{from_} {until}"
    asked = Replay(table, where, topic, *times, rate, keep_partitions, written)
    stopping = False

    def stop(*_: object) -> None:
        nonlocal stopping
        stopping = True

    with failing(name, "replay"), home.claimed():
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, stop)
        replayer = Replayer(asked, home.folder, lambda: stopping)
        sent = _run(replayer, f"{name} to {topic}")
    left = replayer.total - replayer.done
    if as_json:
        show_json({"table": table.table, "topic": topic, "rows": sent, "rows_left": left})
        return
    show_line(f"{sent:,} rows sent to {topic}" + (f", {left:,} rows to come" if left else ""))
    if left:
        note("The same command goes on where it stopped.")


def _run(replayer: "Replayer", title: str) -> int:
    sent = 0
    with progress(title, float(replayer.total)) as advance:
        while True:
            report = replayer.turn(1.0)
            sent += report.rows
            advance(replayer.done)
            if not report.has_more:
                return sent


def _table(given: str, state_dir: Path | None) -> "tuple[LakeOptions, Home, str, str]":
    from runnel.pipelines import upkeep
    from runnel.pipelines.home import FOLDER, Home

    if (folder := table_folder(given)) is not None:
        state = (state_dir or Path(FOLDER)) / f"{folder.name}.replay"
        return lake_of(folder), Home(state), folder.name, DEFAULT_BOOTSTRAP
    spec = with_table(given, "replay")
    home = Home(home_of(spec, state_dir).folder / "replay")
    return upkeep.lake(spec), home, spec.name, spec.source.bootstrap
