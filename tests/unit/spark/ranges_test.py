"""What the driver sends to executors: small, and refused where it says nothing."""

import pickle

import pytest

from runnel.arrow.decoding import DecodeOptionError, Decoding
from runnel.arrow.ranges import Range, Scan


def test_a_task_travels_in_few_bytes() -> None:
    piece = Range("orders", 3, 1_000_000, 2_000_000)
    assert pickle.loads(pickle.dumps(piece)) == piece
    assert len(pickle.dumps(piece)) < 200


def test_a_scan_comes_back_equal() -> None:
    scan = Scan({"bootstrap.servers": "localhost:9092"}, decode=Decoding("json", "id BIGINT"))
    assert pickle.loads(pickle.dumps(scan)) == scan


@pytest.mark.parametrize(
    ("kind", "settings", "named"),
    [
        ("xml", {}, "decode"),
        ("string", {"bad_records": "drop"}, "badRecords"),
        ("json", {}, "valueSchema"),
        ("avro", {}, "schemaRegistry"),
        ("string", {"bad_records": "dlq"}, "deadLetterTopic"),
        ("string", {"dead_letter_topic": "bad"}, "badRecords"),
    ],
)
def test_what_cannot_be_decoded_is_refused_by_the_name_of_its_option(
    kind: str, settings: dict[str, str], named: str
) -> None:
    with pytest.raises(DecodeOptionError, match=named):
        Decoding(kind, **settings)  # type: ignore[arg-type]  # only the strings among the fields
