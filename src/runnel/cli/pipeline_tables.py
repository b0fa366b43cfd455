"""What commands on a pipeline's table share: which table, which time, and how they fail."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from runnel.cli.output import EXIT_FAILED, CommandError
from runnel.cli.pipeline_files import SUFFIXES, load

if TYPE_CHECKING:
    from runnel.pipelines.spec import Spec
    from runnel.spark.lake.lake_options import LakeOptions


def table_folder(given: str) -> Path | None:
    """A folder that is given instead of a pipeline."""
    path = Path(given)
    return path if path.suffix not in SUFFIXES and path.is_dir() else None


def lake_of(folder: Path) -> "LakeOptions":
    from runnel.spark.lake import lake_options

    return lake_options.parse({"table": str(folder)})


def with_table(given: str, to_what: str) -> "Spec":
    spec = load(given)
    if not spec.to.table:
        raise CommandError(f"{spec.name} writes no table, so there is nothing to {to_what}.")
    return spec


def time_of(option: str, text: str | None) -> int | None:
    """Milliseconds since 1970."""
    from runnel.pipelines.starting import time_ms

    if text is None:
        return None
    try:
        return time_ms(text)
    except ValueError:
        raise CommandError(
            f"{option}: {text!r} is no time; write 2026-01-31T12:00, @1767225600000 or -2h."
        ) from None


@contextmanager
def failing(name: str, what: str) -> Iterator[None]:
    """Errors of the work as commands fail: one line, and what to do."""
    from runnel.arrow.errors import OptionError, SourceError
    from runnel.pipelines.backfilling import BackfillError
    from runnel.pipelines.home import BusyError
    from runnel.pipelines.replaying import ReplayError
    from runnel.spark.java import SparkSetupError
    from runnel.spark.lake.lake_options import TableError

    try:
        yield
    except BusyError as error:
        raise CommandError(f"a {what} of {name} is running already: {error}.") from None
    except (BackfillError, OptionError, SparkSetupError, TableError) as error:
        raise CommandError(f"{error}.") from None
    except (SourceError, ReplayError) as error:
        raise CommandError(f"{error}.", EXIT_FAILED) from None
    except BrokenPipeError:  # of who reads our output: no failure
        raise
    except OSError as error:  # of the folder of its state: no room, no right to write
        raise CommandError(f"{error.filename}: {error.strerror}.", EXIT_FAILED) from None


@contextmanager
def spark_failing(spec: "Spec") -> Iterator[None]:
    """Whatever Spark's parts raise, in one line."""
    from pyspark.errors import PySparkException

    from runnel.pipelines.failures import classify

    try:
        yield
    except PySparkException as error:
        raise CommandError(classify(spec, error).text, EXIT_FAILED) from error
