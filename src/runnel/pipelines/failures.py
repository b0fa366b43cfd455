"""Why a pipeline failed, in one line, and whether trying again can help."""

import errno
import re
from dataclasses import dataclass
from typing import Final

from runnel.pipelines.spec import Spec, SpecError
from runnel.pipelines.transforming import TransformError

PASSING: Final = "passing"  # a broker that restarts, a worker that died: tried again
DATA_LOSS: Final = "data loss"
DISK: Final = "disk"
MISTAKE: Final = "mistake"  # of the file, the transform, the options: trying again is no use
UNKNOWN: Final = "unknown"  # tried again, but not for long
UNKNOWN_RETRIES_MAX: Final = 3
TEXT_MAX: Final = 600
OTHER_CHECKPOINT: Final = "another checkpoint"  # the words of a table that has seen one

# Names of exceptions as they stand in tracebacks, nearest to the cause.
_MISTAKES: Final = (
    *("OptionError", "DecodeOptionError", "TableError", "AnalysisException", "ParseException"),
    *("SparkSetupError", "TransformError", "SpecError", "BadRecordError"),
)
_OUR_OWN: Final = ("SourceError", "SinkError", "ReadError")  # say all that there is to say
_PASSING_WORDS: Final = re.compile(
    r"UnansweredError|UnreachableError|GoneError|no broker answers|Connection refused|"
    r"Connection reset|Broken pipe|[Tt]imed out|TimeoutError|CANNOT_OPEN_SOCKET|"
    r"(?<!thrown from the )Python worker|"  # what is thrown there is of the transform
    r"crashed|NOT_LEADER|COORDINATOR_NOT_AVAILABLE|LEADER_NOT_AVAILABLE",
)
_DISK_WORDS: Final = re.compile(
    r"No space left on device|Disk quota exceeded|File too large|\[Errno (?:28|27|122)\]"
)
_DISK_ERRORS: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_PYTHON_ERROR: Final = re.compile(
    r"^(?:pyspark\.errors\.exceptions\.\w+\.)?((?:[A-Za-z_][\w.]*)?(?:Error|Exception|Interrupt))"
    r"(?:: (.*))?$",
    re.MULTILINE,
)
_EXPIRED: Final = re.compile(r"(\S+) begins at (\d+), (\d+) was to be read")


@dataclass(frozen=True)
class Failure:
    sort: str
    text: str  # one line, with what to do

    @property
    def is_tried_again(self) -> bool:
        return self.sort in (PASSING, UNKNOWN)


class PipelineError(Exception):
    """The pipeline ended; `failure` says why."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.text)
        self.failure = failure


def classify(spec: Spec, error: BaseException) -> Failure:
    whole = f"{type(error).__name__}: {error}"
    name, said = _nearest(error)
    line = _one_line(said or str(error) or type(error).__name__)
    if (isinstance(error, OSError) and error.errno in _DISK_ERRORS) or _DISK_WORDS.search(whole):
        return Failure(DISK, spec.hidden(_full_disk(whole)))
    if "DataLossError" in whole:
        return Failure(DATA_LOSS, spec.hidden(_lost(line)))
    if OTHER_CHECKPOINT in whole:
        line += f"; or 'runnel pipeline reset {spec.name} --to WHERE', which says what that means"
    if isinstance(error, SpecError | TransformError) or name in _MISTAKES:
        return Failure(MISTAKE, spec.hidden(line))
    if _PASSING_WORDS.search(whole):
        return Failure(PASSING, spec.hidden(line))
    return Failure(UNKNOWN, spec.hidden(line if name in _OUR_OWN else f"{name}: {line}"))


def _nearest(error: BaseException) -> tuple[str, str]:
    """The last error of a Python traceback within the message, else this one."""
    found = list(_PYTHON_ERROR.finditer(str(error)))
    if found:
        last = found[-1]
        return last[1].rpartition(".")[2], last[2] or ""
    return type(error).__name__, str(error)


def _full_disk(whole: str) -> str:
    found = re.search(
        r"(?:No space left on device|Disk quota exceeded|File too large)[^\n]*", whole
    )
    what = _one_line(found[0]) if found else "no space left"
    return (
        f"the disk is full ({what}). Nothing is lost: make room, then run it again, and it goes on"
        " with the batch that it could not finish."
    )


def _lost(line: str) -> str:
    inner = re.search(r"\((.*)\)\s*$", line)
    what = missing(inner[1] if inner else line)
    return (
        f"records expired, or their topic is gone, before they were read: {what}. To go on with"
        " what is there set from.on_data_loss: skip; to begin elsewhere use 'runnel pipeline"
        " reset'."
    )


def missing(text: str) -> str:
    """The ranges that a message of the source is about; itself where it is about none."""
    found = _EXPIRED.findall(text)
    ranges = [f"offsets {first} to {int(begins) - 1} of {at}" for at, begins, first in found]
    return ", ".join(ranges) or text


def _one_line(text: str) -> str:
    """Without Spark's advice on catalogs and its plans: the place in the query is kept."""
    place = re.search(r"line \d+ pos \d+", text)
    text = text.partition("=== Streaming Query ===")[0]
    before, cut, _ = text.partition(" SQLSTATE: ")
    text = before.partition(" Verify the spelling")[0]
    if cut and place:
        text += f" ({place[0]})"
    line = " ".join(text.split())
    return line if len(line) <= TEXT_MAX else line[: TEXT_MAX - 3] + "..."
