"""`runnel pipeline reset`: begin elsewhere, with all that it means said first."""

from pathlib import Path
from typing import TYPE_CHECKING

from runnel.cli.output import (
    EXIT_FAILED,
    CommandError,
    confirm,
    note,
    show_json,
    show_line,
    show_table,
)
from runnel.cli.pipeline_files import home_of, load

if TYPE_CHECKING:
    from runnel.pipelines.moving import Move


def reset(given: str, to: str, state_dir: Path | None, *, yes: bool, as_json: bool) -> None:
    from runnel.arrow.errors import OptionError, SourceError
    from runnel.pipelines import moving
    from runnel.pipelines.home import BusyError
    from runnel.pipelines.origin import OriginError

    spec = load(given)
    home = home_of(spec, state_dir)
    if not (spec.source.topics or spec.source.pattern):
        raise CommandError(f"{spec.name} reads no topic, so there is nowhere to go back to.")
    try:
        with home.claimed():
            moves = moving.plan(spec, home, _start(to))
            _show(moves, as_json=as_json)
            confirm(f"Reset {spec.name} to {to}?", yes)
            moving.apply(home, moves)
    except BusyError as error:
        raise CommandError(f"{spec.name} is running: {error}. Stop it first.") from None
    except (OptionError, ValueError, OriginError) as error:
        raise CommandError(f"--to {to}: {error}") from None
    except SourceError as error:
        raise CommandError(str(error), EXIT_FAILED) from None
    except OSError as error:  # of the folder of its state
        raise CommandError(f"{error.filename}: {error.strerror}.", EXIT_FAILED) from None
    if not as_json:
        show_line(f"reset {spec.name}: the next run begins there")


def _start(to: str) -> str:
    """A file's content, if one is named."""
    if not to.endswith(".json"):
        return to
    try:
        return Path(to).read_text().strip()
    except OSError as error:
        raise CommandError(f"--to {to}: {error.strerror}.") from None


def _show(moves: "list[Move]", *, as_json: bool) -> None:
    if as_json:
        show_json(
            [
                {
                    "topic": move.at.topic,
                    "partition": move.at.index,
                    "now": move.now,
                    "to": move.to,
                    "read_twice": move.twice,
                    "skipped": move.skipped,
                }
                for move in moves
            ]
        )
        return
    show_table(
        ["partition", "is at", "goes to", "read twice", "skipped"],
        [[str(each.at), each.now, each.to, each.twice, each.skipped] for each in moves],
    )
    twice, skipped = sum(each.twice for each in moves), sum(each.skipped for each in moves)
    if twice:
        note(f"{twice} records will be read again: what is written of them stays, and comes twice.")
    if skipped:
        note(f"{skipped} records will never be read.")
    note("State of aggregations, deduplication and sessions begins empty.")
