"""Records and batches that Hypothesis makes up."""

from typing import Any

from hypothesis import strategies as st

from runnel.native.columns import Record
from runnel.native.compression import Compression
from runnel.native.encode import encode

nullable_bytes = st.none() | st.binary(max_size=40)
headers = st.lists(st.tuples(st.text(max_size=8), nullable_bytes), max_size=4)
timestamps = st.integers(-1, 1 << 42)


def records(max_size: int = 12) -> st.SearchStrategy[list[Record]]:
    one = st.builds(
        Record, key=nullable_bytes, value=nullable_bytes, timestamp=timestamps, headers=headers
    )
    return st.lists(one, min_size=1, max_size=max_size)


@st.composite
def batches(draw: st.DrawFn, codec: Compression | None = None) -> tuple[list[Record], bytearray]:
    """A batch and its records, with offsets."""
    base_offset = draw(st.integers(0, 1 << 50))
    offset = base_offset - 1
    placed = []
    for record in draw(records()):
        offset += draw(st.sampled_from([1, 1, 1, 7]))
        placed.append(record._replace(offset=offset))
    options: dict[str, Any] = {"codec": draw(st.sampled_from(Compression))}
    if codec is not None:
        options["codec"] = codec
    return placed, encode(placed, base_offset=base_offset, **options)
