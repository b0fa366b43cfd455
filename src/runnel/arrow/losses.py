"""Offsets that were planned and are not there any more: an error, or a line in the log.

Spark's Kafka connector knows the same choice by the same option and begins the message with the
same words, by which people find what to do about it.
"""

import logging
from typing import Final

from runnel.arrow.ranges import Range, Scan

ADVICE: Final = (
    "Some data may have been lost because they are not available in Kafka any more; either the data"
    " was aged out by Kafka or the topic may have been deleted before all the data in the topic was"
    " processed. If you don't want your query to fail on such cases, set the source option"
    ' "failOnDataLoss" to "false".'
)
_log = logging.getLogger(__name__)


class ReadError(Exception):
    """A range could not be read; the message names topic, partition, offset and what to do."""


class DataLossError(ReadError):
    """Records of the range are gone."""


def report_loss(scan: Scan, piece: Range, first: int, next_offset: int, why: str) -> None:
    """Offsets from `first` on, up to `next_offset`, will not be read. Raises DataLossError."""
    where = f"{piece.topic}-{piece.partition}"
    what = f"offsets {first} to {next_offset - 1} of {where} cannot be read: {why}"
    if scan.fail_on_data_loss:
        raise DataLossError(f"{ADVICE} ({what})")
    _log.warning("failOnDataLoss is false: %s; they are skipped", what)
