# cython: language_level=3, boundscheck=False, wraparound=False
"""What a coordinator writes, for C: see `_journal_py.py`, its twin."""

from cpython.bytearray cimport PyByteArray_AS_STRING, PyByteArray_FromStringAndSize
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.stdint cimport int16_t, int32_t, int64_t, uint8_t, uint64_t
from libc.string cimport memcpy

from runnel.native._varints cimport put_varlong, varlong_size

from runnel.wire.batch import CONTROL, CRC_START, LOG_OVERHEAD, MAGIC, TRANSACTIONAL, crc32c

cdef int HEADER_BYTES = 61
cdef int CRC_AT = CRC_START - 4
cdef int COVERED_AT = CRC_START
cdef int LENGTH_FROM = LOG_OVERHEAD
cdef int MAGIC_BYTE = MAGIC
cdef int TRANSACTIONAL_BIT = TRANSACTIONAL
cdef int CONTROL_BIT = CONTROL
cdef object NO_TOPIC_ID = bytes(16)


cdef inline uint8_t* put(uint8_t* out, int size, int64_t value) noexcept nogil:
    """Big-endian."""
    cdef int at
    for at in range(size):
        out[at] = <uint8_t>((<uint64_t>value) >> (8 * (size - 1 - at)))
    return out + size


cdef inline uint8_t* put_unsigned(uint8_t* out, uint64_t left) noexcept nogil:
    while left > 0x7F:
        out[0] = <uint8_t>(left & 0x7F | 0x80)
        left >>= 7
        out += 1
    out[0] = <uint8_t>left
    return out + 1


cdef inline uint8_t* put_bytes(uint8_t* out, bytes data) noexcept:
    cdef Py_ssize_t size = PyBytes_GET_SIZE(data)
    memcpy(out, PyBytes_AS_STRING(data), size)
    return out + size


cdef inline int64_t body_size(int64_t delta, bytes key, bytes value) noexcept:
    cdef int64_t size = 3 + varlong_size(delta) + varlong_size(PyBytes_GET_SIZE(key))
    size += PyBytes_GET_SIZE(key)
    if value is None:
        return size + 1
    return size + varlong_size(PyBytes_GET_SIZE(value)) + PyBytes_GET_SIZE(value)


def encode_pairs(
    pairs, int64_t timestamp_ms, int64_t producer_id, int16_t producer_epoch, *, bint control=False
):
    cdef list rows = list(pairs)
    cdef int64_t count = len(rows), size = HEADER_BYTES, body
    cdef int64_t delta
    cdef bytes key, value
    for delta in range(count):
        key, value = rows[delta]
        body = body_size(delta, key, value)
        size += varlong_size(body) + body
    cdef bytearray batch = PyByteArray_FromStringAndSize(NULL, size)
    cdef uint8_t* start = <uint8_t*>PyByteArray_AS_STRING(batch)
    cdef uint8_t* out = put(start, 8, 0)
    cdef int attributes = 0
    if producer_id >= 0:
        attributes |= TRANSACTIONAL_BIT
    if control:
        attributes |= CONTROL_BIT
    out = put(out, 4, size - LENGTH_FROM)
    out = put(out, 4, -1)
    out = put(out, 1, MAGIC_BYTE)
    out = put(out, 4, 0)  # the CRC, when all else is there
    out = put(out, 2, attributes)
    out = put(out, 4, count - 1)
    out = put(out, 8, timestamp_ms)
    out = put(out, 8, timestamp_ms)
    out = put(out, 8, producer_id)
    out = put(out, 2, producer_epoch)
    out = put(out, 4, -1)
    out = put(out, 4, count)
    for delta in range(count):
        key, value = rows[delta]
        out = put_varlong(out, body_size(delta, key, value))
        out = put(out, 2, 0)  # attributes, and no difference in time
        out = put_varlong(out, delta)
        out = put_varlong(out, PyBytes_GET_SIZE(key))
        out = put_bytes(out, key)
        if value is None:
            out = put_varlong(out, -1)
        else:
            out = put_varlong(out, PyBytes_GET_SIZE(value))
            out = put_bytes(out, value)
        out = put(out, 1, 0)  # no headers
    put(start + CRC_AT, 4, crc32c(memoryview(batch)[COVERED_AT:]))
    return batch


def offset_key(str group, str topic, int32_t partition):
    cdef bytes group_bytes = group.encode(), topic_bytes = topic.encode()
    cdef Py_ssize_t group_size = len(group_bytes), topic_size = len(topic_bytes)
    if group_size > 0x7FFF or topic_size > 0x7FFF:
        raise ValueError(f"a name of {max(group_size, topic_size)} bytes")
    cdef bytes key = PyBytes_FromStringAndSize(NULL, 10 + group_size + topic_size)
    cdef uint8_t* out = <uint8_t*>PyBytes_AS_STRING(key)
    out = put(out, 2, 1)
    out = put_bytes(put(out, 2, group_size), group_bytes)
    out = put_bytes(put(out, 2, topic_size), topic_bytes)
    put(out, 4, partition)
    return key


def offset_value(
    int64_t offset, int32_t leader_epoch, str metadata, int64_t committed_ms, bytes topic_id
):
    cdef bytes note = metadata.encode()
    cdef bint is_named = topic_id == NO_TOPIC_ID
    cdef uint8_t[64] fixed
    cdef uint8_t* out = put(put(put(fixed, 2, 4), 8, offset), 4, leader_epoch)
    out = put_unsigned(out, <uint64_t>len(note) + 1)
    cdef Py_ssize_t first = out - fixed, size = first + len(note) + 9
    if not is_named:
        size += 18
    cdef bytes value = PyBytes_FromStringAndSize(NULL, size)
    out = <uint8_t*>PyBytes_AS_STRING(value)
    memcpy(out, fixed, first)
    out = put(put_bytes(out + first, note), 8, committed_ms)
    out = put(out, 1, 0 if is_named else 1)
    if not is_named:
        put_bytes(put(out, 2, 0x0010), topic_id)
    return value
