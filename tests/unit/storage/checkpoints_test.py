"""The small files, byte for byte as a Kafka broker writes them, and atomic replacement."""

from collections.abc import Callable
from errno import EIO, ENOSPC

import pytest

from runnel.errors import RunnelError
from runnel.storage.checkpoints import (
    Boot,
    CleanShutdown,
    EpochStart,
    MetaProperties,
    decode_boot,
    decode_clean_shutdown,
    decode_epochs,
    decode_meta,
    decode_offsets,
    decode_partition_metadata,
    encode_boot,
    encode_clean_shutdown,
    encode_epochs,
    encode_meta,
    encode_offsets,
    encode_partition_metadata,
    replace_file,
)
from runnel.types import TopicPartition
from tests.simulated.disk import Operation, SimDisk

ID = bytes(range(16))
STEPS: list[Operation] = ["open", "truncate", "write", "sync", "rename", "sync_dir"]


def test_offset_checkpoint() -> None:
    offsets = {TopicPartition("b.topic", 1): 7, TopicPartition("a", 0): 2**40}
    data = b"0\n2\na 0 1099511627776\nb.topic 1 7\n"
    assert encode_offsets(offsets) == data
    assert decode_offsets(data, "path") == offsets
    assert decode_offsets(b"0\n0\n", "path") == {}


def test_epoch_checkpoint() -> None:
    data = b"0\n2\n0 0\n5 100\n"
    entries = [EpochStart(0, 0), EpochStart(5, 100)]
    assert encode_epochs(entries) == data
    assert decode_epochs(data, "path") == entries


@pytest.mark.parametrize(
    "data",
    [b"", b"0\n", b"0\n1\n", b"0\n2\na 0 1\n", b"0\n1\na 0 1", b"0\n1\na 0\n", b"x\n0\n", b"\xff"],
)
def test_nonsense_is_a_value_error(data: bytes) -> None:
    with pytest.raises(ValueError):
        decode_offsets(data, "path")


def test_a_checkpoint_cut_anywhere_is_noticed_or_whole() -> None:
    data = encode_offsets({TopicPartition("topic", 0): 12345, TopicPartition("topic", 1): 678})
    for size in range(len(data)):
        with pytest.raises(ValueError):
            decode_offsets(data[:size], "path")


@pytest.mark.parametrize(
    ("decode", "data"),
    [
        (decode_offsets, b"1\n0\n"),
        (decode_epochs, b"1\n0\n"),
        (decode_partition_metadata, b"version: 1\ntopic_id: AAECAwQFBgcICQoLDA0ODw\n"),
        (decode_meta, b"version=2\n"),
    ],
)
def test_files_of_a_later_release_are_refused(
    decode: Callable[[bytes, str], object], data: bytes
) -> None:
    with pytest.raises(RunnelError, match="this release reads"):
        decode(data, "path")


def test_partition_metadata() -> None:
    data = b"version: 0\ntopic_id: AAECAwQFBgcICQoLDA0ODw\n"
    assert encode_partition_metadata(ID) == data
    assert decode_partition_metadata(data, "path") == ID


def test_meta_properties() -> None:
    meta = MetaProperties("4L6g3nShT-eMCtK--X86sw", 1, ID)
    ours = encode_meta(meta)
    assert decode_meta(ours, "path") == meta
    kafkas = (
        b"#\n#Sun Nov 15 08:00:00 UTC 2026\ncluster.id=4L6g3nShT-eMCtK--X86sw\n"
        b"directory.id=AAECAwQFBgcICQoLDA0ODw\nnode.id=1\nversion=1\n"
    )
    assert decode_meta(kafkas, "path") == meta


def test_clean_shutdown_marker() -> None:
    assert encode_clean_shutdown(CleanShutdown(17)) == b'{"version": 0, "brokerEpoch": 17}'
    assert decode_clean_shutdown(b'{"version":0,"brokerEpoch":17}') == CleanShutdown(17)
    for other in (b"", b"{}", b"[]", b"\xff", b'{"brokerEpoch": null}'):
        assert decode_clean_shutdown(other) == CleanShutdown(-1)


def test_boot_file() -> None:
    boot = Boot("f00-ba7", False)
    assert decode_boot(encode_boot(boot)) == boot
    assert decode_boot(b"{") == Boot("", True)


def test_a_replaced_file_is_the_old_or_the_new_whatever_happens() -> None:
    """Method: lose power, or fail, at every step of the replacement, on many seeds."""
    outcomes = set()
    for seed in range(60):
        for step in range(len(STEPS)):
            disk = SimDisk(seed)
            disk.make_dir("d")
            disk.sync_dir("")
            replace_file(disk, "d", "f", b"old" * 300)
            disk.fail(STEPS[step], ENOSPC if step == 2 else EIO, path="f" if step < 5 else "d")
            with pytest.raises(OSError, match="injected"):
                replace_file(disk, "d", "f", b"new" * 500)
            disk.lose_power()
            content = disk.read_whole("d/f")
            assert content in (b"old" * 300, b"new" * 500)
            outcomes.add(content[:3])
            replace_file(disk, "d", "f", b"next")
            assert disk.read_whole("d/f") == b"next"
    assert outcomes == {b"old", b"new"}
