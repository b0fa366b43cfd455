"""The small files of a partition's folder: can they be read?"""

from collections.abc import Callable, Iterator

from runnel.errors import RunnelError
from runnel.inspect.folders import PartitionFiles
from runnel.ports import Disk
from runnel.storage.checkpoints import (
    LEADER_EPOCHS,
    PARTITION_METADATA,
    decode_epochs,
    decode_partition_metadata,
)
from runnel.storage.folder import Notice
from runnel.storage.producers import ProducerStates
from runnel.storage.segment import SNAPSHOT, TXN_INDEX
from runnel.storage.transactions import TransactionIndex


def check_small_files(disk: Disk, files: PartitionFiles) -> Iterator[Notice]:
    """One notice for each that is damaged; a missing one is not. Raises OSError."""
    for path, read in _readers(files):
        try:
            read(disk.read_whole(path))
        except FileNotFoundError:
            continue
        except (ValueError, RunnelError) as error:
            yield Notice(path, f"is damaged ({error})")


def _readers(files: PartitionFiles) -> Iterator[tuple[str, Callable[[bytes], object]]]:
    metadata = f"{files.folder}/{PARTITION_METADATA}"
    epochs = f"{files.folder}/{LEADER_EPOCHS}"
    yield metadata, lambda data: decode_partition_metadata(data, metadata)
    yield epochs, lambda data: decode_epochs(data, epochs) if data else None
    for segment in files.segments:
        if TXN_INDEX in segment.sizes:
            base_offset = segment.base_offset
            yield segment.path(TXN_INDEX), _transactions_from(base_offset)
    for offset in files.snapshots:
        yield f"{files.folder}/{offset:020d}{SNAPSHOT}", ProducerStates.load


def _transactions_from(base_offset: int) -> Callable[[bytes], object]:
    return lambda data: TransactionIndex.decode(data, base_offset)
