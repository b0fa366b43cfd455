"""Rows of tables as the records that they were made of."""

import json

import pyarrow as pa
import pytest

from runnel.arrow.ddl import struct_type
from runnel.arrow.decoding_json import JsonDecoder
from runnel.pipelines.table_records import Shape, records


def values_of(batch: pa.RecordBatch) -> list[bytes | None]:
    found = records(batch, Shape.of(batch.schema), None, None)
    return [record.value for record in found if record is not None]


@pytest.mark.parametrize("type_", [pa.string(), pa.large_string(), pa.binary()])
def test_a_value_that_is_text_is_sent_as_it_was(type_: pa.DataType) -> None:
    values = pa.array(["oops", None, ""], pa.string()).cast(type_)
    batch = pa.record_batch({"key": [b"a", b"b", b"c"], "value": values, "offset": [0, 1, 2]})
    assert values_of(batch) == [b"oops", None, b""]


def test_a_nested_value_is_sent_without_its_column() -> None:
    values = pa.array([{"id": 1}, None], pa.struct([("id", pa.int64())]))
    assert values_of(pa.record_batch({"value": values, "topic": ["t", "t"]})) == [b'{"id":1}', None]
    beside = pa.record_batch({"id": [1, 2], "value": values})
    assert values_of(beside) == [b'{"id":1,"value":{"id":1}}', b'{"id":2,"value":null}']


def test_numbers_that_json_has_not_are_words_that_decoders_read() -> None:
    numbers = [float("nan"), float("inf"), float("-inf"), 1.5]
    batch = pa.record_batch({"n": numbers, "list": [[n] for n in numbers]})
    found = values_of(batch)
    for raw in found:
        json.loads(raw or b"", parse_constant=pytest.fail)
    (column,), bad = JsonDecoder(struct_type("n DOUBLE")).decode(pa.array(found, pa.binary()))
    assert not bad and str(column.to_pylist()) == str(numbers)
