"""Finding lines: the newest that match, in the index and in the topic beyond it."""

import time
from collections.abc import Generator, Sequence
from heapq import merge
from itertools import islice
from typing import Final, NamedTuple

from runnel.logs.corpus import Advance, Corpus, Piece
from runnel.logs.filters import Filters, LogRecord
from runnel.logs.index import Index
from runnel.logs.lines import Line, parsed
from runnel.logs.segment import LogIndexError
from runnel.logs.topics import Source

TRIES: Final = 3  # a segment may be merged away between looking into the list and into the file


class Hit(NamedTuple):
    record: LogRecord
    line: Line
    is_match: bool = True  # else it stands beside one


class Searched(NamedTuple):
    """Matches in the order of time, and what was looked at to find them."""

    hits: list[Hit]
    is_cut: bool  # whether there are older ones
    indexed_lines: int  # that the index answered for
    scanned: int  # offsets of the topic that were read
    to_scan: int  # that were to be read, had no limit been reached
    seconds: float
    groups: list[list[Hit]]  # the matches with the lines around them, if they were asked for
    ends: dict[int, int]  # by partition, up to which there was something to be found


def search(
    filters: Filters,
    *,
    index: Index | None,
    source: Source | None,
    limit: int,
    context: tuple[int, int] = (0, 0),
    advance: Advance = lambda offsets: None,
) -> Searched:
    """The newest `limit` lines that match: each partition from its end, by the time of the lines.

    `context` is how many lines before and after each are wanted as well. Raises LogIndexError,
    and what the source raises.
    """
    gone: FileNotFoundError | None = None
    for _ in range(TRIES):
        try:
            return _searched(filters, index, source, limit, context, advance)
        except FileNotFoundError as error:
            if index is None:
                raise
            gone = error
    assert index is not None, "else there is no segment to be gone"
    raise LogIndexError(
        f"{gone} is gone: run `runnel logs index {index.topic} --rebuild`"
    ) from gone


def _searched(
    filters: Filters,
    index: Index | None,
    source: Source | None,
    limit: int,
    context: tuple[int, int],
    advance: Advance,
) -> Searched:
    began = time.perf_counter()
    indexed_lines = scanned = to_scan = 0

    def looked_at(offsets: int) -> None:
        nonlocal scanned
        scanned += offsets
        advance(scanned)

    with Corpus(index, source) as corpus:
        newest_first: list[Generator[Hit]] = []
        for partition, span in corpus.wanted(filters).items():
            pieces = corpus.pieces(partition, span)
            indexed_lines += sum(_lines(piece) for piece in pieces)
            to_scan += sum(
                piece.span.end - piece.span.start for piece in pieces if piece.segment is None
            )
            newest_first.append(_matches(corpus, filters, partition, pieces, limit + 1, looked_at))
        found = list(islice(merge(*newest_first, key=_place, reverse=True), limit + 1))
        for matches in newest_first:  # before the files that they read are closed
            matches.close()
        hits = sorted(found[:limit], key=_place)
        groups = _groups(corpus, hits, *context) if any(context) else []
        ends = {at: span.end for at, span in corpus.bounds.items()}
    seconds = time.perf_counter() - began
    is_cut = len(found) > limit
    return Searched(hits, is_cut, indexed_lines, scanned, to_scan, seconds, groups, ends)


def _matches(
    corpus: Corpus,
    filters: Filters,
    partition: int,
    pieces: Sequence[Piece],
    keep: int,
    advance: Advance,
) -> Generator[Hit]:
    """Of one partition, from its end backwards, found as they are asked for."""
    for piece in reversed(pieces):
        for record in corpus.backwards(filters, piece, partition, keep, advance):
            line = filters.found(record)
            if line is not None:
                yield Hit(record, line)


def _place(hit: Hit) -> tuple[int, int, int]:
    return hit.record.timestamp_ms, hit.record.partition, hit.record.offset


def _lines(piece: Piece) -> int:
    """About how many of a segment are in the range."""
    info = piece.segment
    if info is None or info.end == info.start:
        return 0
    return info.lines * (piece.span.end - piece.span.start) // (info.end - info.start)


def _groups(corpus: Corpus, hits: Sequence[Hit], before: int, after: int) -> list[list[Hit]]:
    """Matches with their neighbours; where these meet it is one group. By the time of the first."""
    groups: list[list[Hit]] = []
    for partition in sorted({hit.record.partition for hit in hits}):
        here = [hit for hit in hits if hit.record.partition == partition]
        matched = {hit.record.offset: hit for hit in here}
        group: dict[int, Hit] = {}
        for offset in sorted(matched):
            lines = [
                *corpus.before(partition, offset, before),
                matched[offset].record,
                *corpus.after(partition, offset + 1, after),
            ]
            if group and lines[0].offset > max(group) + 1:
                groups.append(_in_order(group))
                group = {}
            for record in lines:
                hit = matched.get(record.offset)
                group[record.offset] = hit or Hit(record, parsed(record.value), False)
        groups.append(_in_order(group))
    return sorted(groups, key=_first_match_ms)


def _in_order(group: dict[int, Hit]) -> list[Hit]:
    return [group[offset] for offset in sorted(group)]


def _first_match_ms(group: Sequence[Hit]) -> int:
    return next(hit.record.timestamp_ms for hit in group if hit.is_match)
