"""Columns that grow with the values of a topic."""

from pathlib import Path

import pyarrow as pa
import pytest

from runnel.arrow.inferring import inferred
from runnel.pipelines.evolving import Columns
from runnel.pipelines.spec import read

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
