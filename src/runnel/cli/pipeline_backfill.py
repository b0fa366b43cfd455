"""`runnel pipeline backfill`: records of a time range that the table does not have."""

from pathlib import Path
from typing import TYPE_CHECKING

from runnel.cli.figures import count_text
from runnel.cli.output import confirm, note, progress, show_json, show_line
from runnel.cli.pipeline_files import home_of, load
from runnel.cli.pipeline_tables import failing, spark_failing, time_of

if TYPE_CHECKING:
    from runnel.pipelines.backfilling import Plan
    from runnel.pipelines.home import Home
    from runnel.pipelines.spec import Spec


def backfill(
    given: str,
    from_: str,
    to: str | None,
    chunk_records: int,
    state_dir: Path | None,
    *,
    yes: bool,
    as_json: bool,
) -> None:
    from runnel.pipelines import backfilling
    from runnel.pipelines.home import Home

    spec = load(given)
    home = home_of(spec, state_dir)
    from_ms, to_ms = time_of("--from", from_) or 0, time_of("--to", to)
    own = Home(home.folder / "backfill")
    written = 0
    with failing(spec.name, "backfill"), own.claimed():
        backfilling.check(spec)
        asked = f"--from {from_}" + (f" --to {to}" if to else "")
        plan = backfilling.planned(spec, home, asked, from_ms, to_ms, chunk_records)
        left = plan.records - plan.records_done
        if plan.done:
            note(f"going on after chunk {plan.done} of {len(plan.chunks)}")
        if left:
            confirm(f"Read {left} records again, and write those that are missing?", yes)
            written = _run(spec, home, own, plan)
        else:
            backfilling.forget(home)
            note("no records of that time: they are not kept, or the stream has yet to read them.")
    if as_json:
        show_json({"pipeline": spec.name, "records": left, "written": written})
    else:
        show_line(f"{spec.name}: {left:,} records read again, {written:,} of them were missing")


def _run(spec: "Spec", home: "Home", own: "Home", plan: "Plan") -> int:
    from runnel.pipelines import backfilling
    from runnel.pipelines.sparking import spark_for

    written = 0
    with (
        progress("backfilling", float(plan.records)) as advance,
        spark_failing(spec),
        spark_for(spec, own) as spark,
    ):
        for chunk in backfilling.run(spec, home, plan, spark, note):
            written += chunk.written
            advance(chunk.records_done)
            note(
                f"chunk {chunk.number + 1} of {len(plan.chunks)}: {count_text(chunk.written)} of"
                f" {count_text(chunk.records)} records were missing"
            )
    return written
