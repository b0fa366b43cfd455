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
