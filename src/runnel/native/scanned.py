"""What a scan of a log knows: how far it came, what it may accept, what a run of batches gave."""

from typing import NamedTuple


class Scanned(NamedTuple):
    """The batches so far. Nothing is indexed of them past `indexed_position`."""

    position: int  # after the last of them, in the file
    next_offset: int
    leader_epoch: int  # of the last of them
    indexed_position: int
    max_timestamp: int
    max_timestamp_offset: int


class ScanRules(NamedTuple):
    """What of a batch that no CRC covers must be so, and how often one is indexed."""

    gaps_before: int  # a batch that starts here or before need not follow the one before it
    last_offset_max: int
    index_interval_bytes: int


class IndexEntry(NamedTuple):
    """A batch that is to be indexed, and the largest timestamp up to its end."""

    last_offset: int
    position: int
    max_timestamp: int
    max_timestamp_offset: int


class Run(NamedTuple):
    """Good batches one after the other, and all that is to be known of them."""

    after: Scanned
    entries: list[IndexEntry]
    produced: list[int]  # positions of those with a producer id
