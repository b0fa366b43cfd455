"""From where a read begins and ends, as options say, to offsets: few rounds of questions each."""

import logging
from collections.abc import Collection, Mapping
from typing import Final

from runnel.arrow.errors import OptionError, SourceError
from runnel.arrow.losses import ADVICE, DataLossError
from runnel.spark.reads.assignment import Assignment, Logs
from runnel.spark.reads.offsets import EARLIEST, LATEST, OffsetMap, listed
from runnel.spark.reads.positions import Position, Way
from runnel.types import TopicPartition

_log: Final = logging.getLogger(__name__)


def resolve(logs: Logs, position: Position, assigned: Assignment) -> dict[TopicPartition, int]:
    """An offset for each assigned partition. Raises OptionError, SourceError."""
    partitions = assigned.partitions
    if position.way == Way.EARLIEST:
        return dict(logs.earliest(partitions))
    if position.way == Way.LATEST:
        return dict(logs.latest(partitions))
    if position.way == Way.OFFSETS:
        found = dict(position.offsets.by_partition)
        _check_same(position, found, partitions)
        _check_ids(position, assigned)
    else:
        if position.way == Way.TIMESTAMPS:
            _check_same(position, position.timestamps_ms, partitions)
        found = _at_timestamps(logs, position, partitions)
    first = [at for at, offset in found.items() if offset == EARLIEST]
    last = [at for at, offset in found.items() if offset == LATEST]
    return found | dict(logs.earliest(first)) | dict(logs.latest(last))


def recreated(was: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """Topics that have another id than before: deleted, and made anew under the same name."""
    return sorted(name for name in was if now.get(name) and was[name] != now[name])


def report_loss(fails: bool, what: str, advice: str = "") -> None:
    """Raises DataLossError, or logs the same where `failOnDataLoss` is false."""
    if fails:
        raise DataLossError(f"{ADVICE} ({what}{'; ' + advice if advice else ''})")
    _log.warning("failOnDataLoss is false: %s; the read goes on with what is there", what)


def check_kept(logs: Logs, starts: OffsetMap, option: str, *, fails: bool) -> OffsetMap:
    """The starts, or where they have expired the first offsets that are kept.

    Asks for the beginnings of all these logs. Raises DataLossError.
    """
    firsts = logs.earliest(starts)
    expired = {at: offset for at, offset in starts.items() if offset < firsts[at]}
    if not expired:
        return starts
    some = ", ".join(
        f"{at} begins at {firsts[at]}, {offset} was to be read"
        for at, offset in sorted(expired.items())[:8]
    )
    report_loss(fails, f"{option}: expired offsets: {some}", "or start from earliest")
    return {at: max(offset, firsts[at]) for at, offset in starts.items()}


def check_written(logs: Logs, ends: OffsetMap, option: str, *, fails: bool) -> OffsetMap:
    """The ends, or where the log is shorter its end. Raises DataLossError."""
    lasts = logs.latest(ends)
    beyond = {at: offset for at, offset in ends.items() if offset > lasts[at]}
    if not beyond:
        return ends
    some = ", ".join(
        f"{at} ends at {lasts[at]}, not at {offset}" for at, offset in sorted(beyond.items())[:8]
    )
    report_loss(fails, f"{option}: offsets beyond the end: {some}", "or end at latest")
    return {at: min(offset, lasts[at]) for at, offset in ends.items()}


def _at_timestamps(
    logs: Logs, position: Position, partitions: Collection[TopicPartition]
) -> dict[TopicPartition, int]:
    wanted = {at: position.timestamp_of(at) for at in partitions}
    found: dict[TopicPartition, int] = {}
    for at, offset in logs.at_timestamps(wanted).items():
        if offset is None and not position.or_latest:
            raise OptionError(
                f"No offset matched from request of topic-partition {at} and timestamp"
                f" {wanted[at]}. ({position.option}: nothing is that new; with"
                " startingOffsetsByTimestampStrategy=latest the partition is read from its end)"
            )
        found[at] = LATEST if offset is None else offset
    return found


def _check_same(
    position: Position,
    specified: Mapping[TopicPartition, int],
    assigned: Collection[TopicPartition],
) -> None:
    if specified.keys() == set(assigned):
        return
    missing, extra = set(assigned) - specified.keys(), specified.keys() - set(assigned)
    what = [f"missing: {listed(missing)}"] if missing else []
    what += [f"not there: {listed(extra)}"] if extra else []
    hint = " Use -1 for latest, -2 for earliest." if position.way == Way.OFFSETS else ""
    raise SourceError(
        f"{position.option}: the partitions specified don't match what are assigned; you must"
        f" specify all of them.{hint} Of {position.option} are {'; '.join(what)}"
    )


def _check_ids(position: Position, assigned: Assignment) -> None:
    for topic in recreated(position.offsets.topic_ids, assigned.topic_ids):
        raise SourceError(
            f"{position.option}: topic {topic} was deleted and made anew since these offsets were"
            f" written (id {position.offsets.topic_ids[topic]}, now {assigned.topic_ids[topic]});"
            " they mean nothing in it"
        )
