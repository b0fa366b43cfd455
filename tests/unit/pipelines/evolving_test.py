"""Columns that grow with the values of a topic."""

from pathlib import Path

import pyarrow as pa
import pytest

from runnel.arrow.inferring import inferred
from runnel.pipelines import checks
from runnel.pipelines.evolving import NOTE, Columns
from runnel.pipelines.spec import read
from runnel.pipelines.value_columns import column_name

FILE = """\
from: {topic: orders}
decode: {format: json}
to: {table: lake/orders}
options: {evolve: true}
"""


@pytest.mark.parametrize("name", [r"a\u0000b", r"a\u001bb", r"a\nb", "a;b", ""])
def test_a_field_whose_name_no_table_takes_is_left_out_and_told_once(
    tmp_path: Path, name: str
) -> None:
    told: list[str] = []
    columns = Columns(read(FILE, tmp_path / "orders.yml", {}), tmp_path, None, told.append)
    for _ in range(2):
        values = pa.array([f'{{"{name}": 1, "id": 2}}'.encode()], pa.binary())
        columns.grow(inferred(values))
    assert columns.wanted.names == ["id"]
    assert [line for line in told if "is left out: that is no name for a column" in line] == told[
        :1
    ]


def test_so_it_is_within_a_column(tmp_path: Path) -> None:
    told: list[str] = []
    columns = Columns(read(FILE, tmp_path / "orders.yml", {}), tmp_path, None, told.append)
    value = rb'{"s": {"a\u0000b": 1, "c": 2, "C": 3, "d": {"e f": 4}}, "S": 5, "t": {"": 6}}'
    columns.grow(inferred(pa.array([value], pa.binary())))
    assert columns.wanted.simpleString() == "struct<s:struct<c:bigint>>"
    assert "field 's.C' is left out: c is a column already" in told
    assert "field 's.d.e f' is left out: that is no name for a column" in told
    columns.grow(inferred(pa.array([rb'{"s": {"C": 1, "g": 7}}'], pa.binary())))
    assert columns.wanted.simpleString() == "struct<s:struct<c:bigint,g:bigint>>"


def test_a_field_that_differs_from_a_column_of_records_in_case_alone_is_left_out(
    tmp_path: Path,
) -> None:
    told: list[str] = []
    spec = read(FILE, tmp_path / "orders.yml", {})
    columns = Columns(spec, tmp_path, None, told.append)
    value = rb'{"Timestamp": "2026-01-01", "_RAW": 1, "topic": 2, "value_topic": 3, "id": 4}'
    for _ in range(2):
        columns.grow(inferred(pa.array([value], pa.binary())))
    assert columns.wanted.names == ["topic", "id"]
    assert told == [
        "field 'Timestamp' is left out: timestamp is a column already",
        "field '_RAW' is left out: _raw is a column already",
        "field 'value_topic' is left out: value_topic is a column already",
        "new columns: value_topic (bigint), id (bigint)",
    ]
    # An earlier version noted it, and could not write.
    noted = (tmp_path / NOTE).read_text().replace('"name":"id"', '"name":"Timestamp"')
    (tmp_path / NOTE).write_text(noted)
    assert Columns(spec, tmp_path, None, told.append).wanted.names == ["topic"]


def test_rows_of_a_database_have_no_record_beside_them(tmp_path: Path) -> None:
    spec = read(FILE, tmp_path / "orders.yml", {})
    told: list[str] = []
    columns = Columns(spec, tmp_path, None, told.append, beside_record=False)
    columns.grow(inferred(pa.array([b'{"Timestamp": 1, "topic": 2}'], pa.binary())))
    assert columns.wanted.names == ["Timestamp", "topic"]
    assert told == ["new columns: Timestamp (bigint), topic (bigint)"]


@pytest.mark.parametrize("name", ["_error", "_raw", "key", "value"])
def test_fields_that_are_named_as_other_columns_have_a_prefix(tmp_path: Path, name: str) -> None:
    columns = Columns(read(FILE, tmp_path / "orders.yml", {}), tmp_path, None, lambda _: None)
    columns.grow(inferred(pa.array([f'{{"{name}": 1}}'.encode()], pa.binary())))
    assert [column_name(each) for each in columns.wanted.names] == [f"value_{name}"]


@pytest.mark.parametrize(
    ("decode", "evolve", "is_good"),
    [
        ("Timestamp STRING", True, False),
        ("timestamp STRING", True, True),  # becomes value_timestamp
        ("_raw STRING, Value STRING", True, True),
        ("Timestamp STRING", False, False),
        ("timestamp STRING", False, False),
        ("_error STRING", False, False),
        ("_error STRING, bad_records: fail", False, True),
        ("Timestamp STRING, nested: true", False, True),
    ],
)
def test_a_declared_field_that_cannot_be_a_column_is_told_before_a_run(
    tmp_path: Path, decode: str, evolve: bool, is_good: bool
) -> None:
    schema, *more = decode.split(", ") if ":" in decode else [decode]
    text = FILE.replace("json}", f'json, schema: "{schema}", {", ".join(more)}}}')
    text = text.replace("evolve: true", f"evolve: {str(evolve).lower()}")
    found = [each.message for each in checks.of_file(read(text, tmp_path / "orders.yml", {}))]
    assert (not found) == is_good, found
    assert all("is the name of a column that every record has" in line for line in found)
