"""Goal: the header of a request is read alike in C and in Python, whatever the bytes are.

Interpreted, both are the same function; `make test` runs this with the compiled one, too.
"""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runnel.errors import WireError
from runnel.wire import hot
from runnel.wire.primitives import CLIENT_ID_BYTES_MAX

HEADER = struct.Struct(">hhih")


def outcome_of(read: object, frame: memoryview) -> object:
    assert callable(read)
    try:
        return read(frame)
    except WireError as error:
        return str(error)


@given(
    st.integers(0, 90),
    st.integers(0, 20),
    st.integers(-(2**31), 2**31 - 1),
    st.binary(max_size=40) | st.text(max_size=20).map(str.encode),
    st.integers(-3, 3),
    st.binary(max_size=8),
)
def test_both_read_the_same(
    key: int, version: int, correlation_id: int, client_id: bytes, off_by: int, rest: bytes
) -> None:
    head = HEADER.pack(key, version, correlation_id, max(len(client_id) + off_by, -1))
    frame = memoryview(head + client_id + rest)
    assert outcome_of(hot.request_header, frame) == outcome_of(hot._request_header, frame)


@given(st.binary(max_size=30))
def test_both_refuse_the_same(data: bytes) -> None:
    frame = memoryview(data)
    assert outcome_of(hot.request_header, frame) == outcome_of(hot._request_header, frame)


def test_what_it_says() -> None:
    frame = memoryview(HEADER.pack(1, 12, -7, 3) + "bü".encode() + b"rest")
    assert hot.request_header(frame) == (1, 12, -7, "bü", 13)
    assert hot.request_header(memoryview(HEADER.pack(0, 3, 9, -1))) == (0, 3, 9, "", 10)


@pytest.mark.parametrize(
    ("frame", "why"),
    [
        (HEADER.pack(0, 3, 9, CLIENT_ID_BYTES_MAX + 1) + bytes(2000), "client id of 1025 bytes"),
        (HEADER.pack(0, 3, 9, 2) + b"\xff\xff", "client id is not UTF-8"),
        (HEADER.pack(0, 3, 9, 9) + b"short", "9 bytes wanted, 5 left"),
        (b"too short", "10 bytes wanted, 9 left"),
    ],
)
def test_what_no_client_sends_is_refused(frame: bytes, why: str) -> None:
    with pytest.raises(WireError, match=why):
        hot.request_header(memoryview(frame))
