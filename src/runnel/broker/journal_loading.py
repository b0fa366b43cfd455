"""Loading a shard: its journal is replayed in small steps, so that the loop goes on meanwhile.

It is read and taken apart by a worker: a chunk is thousands of batches, most of which say what a
later one says anew.
"""

import asyncio
from functools import partial
from typing import Any, Final

from runnel.broker.journal import partition_of
from runnel.coordinator.runtime import Shard
from runnel.errors import ErrorCode, RunnelError
from runnel.native.columns import ControlType
from runnel.native.journal_reading import JournalReader
from runnel.native.journal_steps import Step
from runnel.ports import Clock, Workers
from runnel.types import FileSlice

READ_BYTES: Final = 1 << 20  # compiled, a worker has the interpreter to itself for 3 ms
STEP_MS: Final = 5  # of loading, before others have a turn
STEP_RECORDS: Final = 64  # between looks at the clock


async def load(shard: Shard[Any], clock: Clock, workers: Workers) -> None:
    """Replay all of the journal; nothing is written to it meanwhile, as nobody may ask yet.

    Returns early if the shard is closed. Raises RunnelError, WireError, OSError.
    """
    log = partition_of(shard).log
    offset = log.log_start_offset
    while offset < log.log_end_offset and shard.is_open:
        found = log.slice(offset, READ_BYTES, log.log_end_offset, at_least_one=True)
        if found is None:
            break
        reader = JournalReader(shard.machine.straight)
        next_offset = await workers.run(partial(_read, reader, found, offset))
        if next_offset <= offset:
            raise RunnelError(ErrorCode.CORRUPT_MESSAGE, f"there is no batch at offset {offset}")
        await _replay(shard, reader.steps, clock)
        offset = next_offset


def _read(reader: JournalReader, found: FileSlice, offset: int) -> int:
    """Whole batches, from that offset on; the offset after them."""
    return reader.read(found.file.read_at(found.position, found.size), offset)


async def _replay(shard: Shard[Any], steps: list[Step], clock: Clock) -> None:
    pause_ms = clock.monotonic_ms() + STEP_MS
    for count, (key, value, producer_id) in enumerate(steps):
        if isinstance(key, ControlType):
            is_commit = key is ControlType.COMMIT
            shard.machine.end_transaction(producer_id, is_commit=is_commit)
        else:
            shard.replay(key, value, producer_id)
        if not count % STEP_RECORDS and clock.monotonic_ms() >= pause_ms:
            await asyncio.sleep(0)
            pause_ms = clock.monotonic_ms() + STEP_MS
