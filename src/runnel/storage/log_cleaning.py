"""Putting compacted segments in the place of the old ones: renames on the loop, nothing else.

The order is Kafka's, so that a crash leaves what either broker can finish (`folder.py` does):

  1. the new segment is complete and synced as `.cleaned`: a start removes such files;
  2. each of them is renamed to `.swap`: a start finishes what it finds so, once the last is;
  3. the old segments are renamed to `.deleted`, and removed in time;
  4. the `.swap` files take the names of a segment.
"""

from collections.abc import Sequence

from runnel.storage.folder import CLEANED, SWAP
from runnel.storage.log_cutting import CuttableLog
from runnel.storage.segment import INDEX, LOG, SUFFIXES, TIME_INDEX, TXN_INDEX, Segment
from runnel.storage.trash import DELETED


class CleanableLog(CuttableLog):
    @property
    def segment_bytes_max(self) -> int:
        """So much fits into one segment, and into its indexes."""
        return self._roll_bytes

    @property
    def generation(self) -> int:
        """Another number after every truncation."""
        return self._generation

    def may_replace(self, old: Sequence[Segment]) -> bool:
        """Whether these segments are still there, next to each other and closed."""
        if self.offline is not None or not old or old[0] not in self.segments:
            return False
        first = self.segments.index(old[0])
        return (
            self.segments[first : first + len(old)] == list(old)
            and old[-1] is not self._active
            and not any(segment in old for segment in self.unflushed_segments)
        )

    def replace_segments(self, old: Sequence[Segment], size_bytes: int) -> None:
        """The files `.cleaned` of the first one's base offset are what is left of all of them.

        Durable once the caller has synced the folder; until then a power loss may leave the old
        ones or the new one, which read the same. Raises KAFKA_STORAGE_ERROR, and is offline then.
        """
        assert self.may_replace(old), "the caller has asked"
        disk, first = self._around.disk, self.segments.index(old[0])
        segment = Segment(
            disk, self._around.open_files, self.folder, old[0].base_offset,
            index_interval_bytes=self._config.index_interval_bytes, created_ms=old[-1].created_ms,
        )  # fmt: skip
        segment.size = size_bytes
        segment.next_offset = old[-1].next_offset
        segment.is_active = False
        try:
            present = [
                suffix
                for suffix in (INDEX, TIME_INDEX, TXN_INDEX, LOG)
                if disk.exists(segment.path(suffix) + CLEANED)
            ]
            for suffix in present:
                disk.rename(segment.path(suffix) + CLEANED, segment.path(suffix) + SWAP)
            for replaced in old:
                self._discard_replaced(replaced, keeps_snapshot=replaced is old[0])
            for suffix in present:
                disk.rename(segment.path(suffix) + SWAP, segment.path(suffix))
        except OSError as error:
            raise self.fail(error, half_done=True) from error
        self.segments[first : first + len(old)] = [segment]

    def _discard_replaced(self, segment: Segment, *, keeps_snapshot: bool) -> None:
        """The producers' state before the first segment is what it was, so it keeps its file."""
        for suffix in SUFFIXES:
            if not (keeps_snapshot and suffix == SUFFIXES[-1]):
                self._around.trash.discard_file(
                    segment.path(suffix), self._config.file_delete_delay_ms
                )
        segment.ending = DELETED
        segment.release()  # or its bytes stay on the disk although its name is gone
        if not keeps_snapshot and segment.base_offset in self.snapshots:
            self.snapshots.remove(segment.base_offset)


def cleaned_paths(folder: str, base_offset: int) -> list[str]:
    stem = f"{folder}/{base_offset:020d}"
    return [f"{stem}{suffix}{CLEANED}" for suffix in (LOG, INDEX, TIME_INDEX, TXN_INDEX)]
