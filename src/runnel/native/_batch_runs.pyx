# cython: language_level=3, boundscheck=False, wraparound=False
"""Runs of batches without a Python object for each, for C: see `_batch_runs_py.py`, its twin."""

from cpython.buffer cimport PyBUF_READ
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.memoryview cimport PyMemoryView_FromMemory
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t

from runnel.native.faults import damaged
from runnel.native.journal_steps import give_last
from runnel.native.scanned import IndexEntry, Run, Scanned
from runnel.wire.batch import crc32c

cdef extern from *:
    """
    enum { BATCH_HEADER = 61, BATCH_OVERHEAD = 12, COVERED_AT = 21, BATCH_MAGIC = 2,
           COMPRESSION_BITS = 0x07, CONTROL_BIT = 0x20 };
    static const int64_t OFFSET_LIMIT = INT64_C(1) << 62;
    """
    const int BATCH_HEADER, BATCH_OVERHEAD, COVERED_AT, BATCH_MAGIC, COMPRESSION_BITS, CONTROL_BIT
    const int64_t OFFSET_LIMIT

cdef struct Header:
    int64_t base_offset
    int32_t length
    int32_t leader_epoch
    int magic
    uint32_t crc
    int attributes
    int32_t last_delta
    int64_t max_timestamp
    int64_t producer_id
    int32_t count


cdef inline uint64_t big_endian(const uint8_t* at, int size) noexcept nogil:
    cdef uint64_t value = 0
    cdef int i
    for i in range(size):
        value = (value << 8) | at[i]
    return value


cdef inline void read_header(const uint8_t* at, Header* header) noexcept nogil:
    header.base_offset = <int64_t>big_endian(at, 8)
    header.length = <int32_t>big_endian(at + 8, 4)
    header.leader_epoch = <int32_t>big_endian(at + 12, 4)
    header.magic = at[16]
    header.crc = <uint32_t>big_endian(at + 17, 4)
    header.attributes = <int>big_endian(at + 21, 2)
    header.last_delta = <int32_t>big_endian(at + 23, 4)
    header.max_timestamp = <int64_t>big_endian(at + 35, 8)
    header.producer_id = <int64_t>big_endian(at + 43, 8)
    header.count = <int32_t>big_endian(at + 57, 4)


cdef inline bint has_its_crc(const uint8_t* batch, const Header* header) except -1:
    # A view of memory costs half of what a slice of a view does; it is gone when this returns.
    covered = PyMemoryView_FromMemory(
        <char*>batch + COVERED_AT, BATCH_OVERHEAD + header.length - COVERED_AT, PyBUF_READ
    )
    return <uint32_t>crc32c(covered) == header.crc


cdef inline bint read_varint(const uint8_t** at, const uint8_t* end, int64_t* out) noexcept nogil:
    """Whether one of 64 bits ends before `end`; zigzag."""
    cdef uint64_t found = 0
    cdef int shift = 0
    cdef uint8_t byte
    while at[0] < end:
        byte = at[0][0]
        at[0] += 1
        if shift == 63 and byte > 1:
            return False
        found |= <uint64_t>(byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            out[0] = <int64_t>(found >> 1) ^ -<int64_t>(found & 1)
            return True
    return False


def scan_run(bytes data, int64_t data_position, rules, before):
    cdef int64_t gaps_before = rules[0], last_offset_max = rules[1], interval = rules[2]
    cdef int64_t position = before[0], next_offset = before[1]
    cdef int32_t leader_epoch = before[2]
    cdef int64_t indexed = before[3], max_timestamp = before[4], max_offset = before[5]
    cdef int64_t at = position - data_position, left, last_offset, size = PyBytes_GET_SIZE(data)
    cdef const uint8_t* start = <const uint8_t*>PyBytes_AS_STRING(data)
    cdef Header header
    cdef list entries = [], produced = []
    while True:
        left = size - at
        if left < BATCH_HEADER:
            break
        read_header(start + at, &header)
        if (
            header.length < BATCH_HEADER - BATCH_OVERHEAD
            or header.length > left - BATCH_OVERHEAD
            or header.magic != BATCH_MAGIC
            or header.attributes & CONTROL_BIT
            or header.leader_epoch != leader_epoch
            or header.last_delta < 0
            or header.base_offset < next_offset
            or (header.base_offset > next_offset and header.base_offset > gaps_before)
            or header.base_offset > last_offset_max - header.last_delta
            or not has_its_crc(start + at, &header)
        ):
            break
        position = data_position + at
        last_offset = header.base_offset + header.last_delta
        if header.max_timestamp > max_timestamp:
            max_timestamp = header.max_timestamp
            max_offset = last_offset
        if position - indexed > interval:
            entries.append(IndexEntry(last_offset, position, max_timestamp, max_offset))
            indexed = position
        if header.producer_id >= 0:
            produced.append(position)
        next_offset = last_offset + 1
        at += BATCH_OVERHEAD + header.length
    after = Scanned(
        data_position + at, next_offset, leader_epoch, indexed, max_timestamp, max_offset
    )
    return Run(after, entries, produced)


def read_run(bytes data, int64_t position, int64_t from_offset, straight, dict last, list steps):
    cdef int64_t next_offset = from_offset, left, size = PyBytes_GET_SIZE(data)
    cdef int64_t record_size, passed, offset_delta, key_size, value_size
    cdef const uint8_t* start = <const uint8_t*>PyBytes_AS_STRING(data)
    cdef const uint8_t* at
    cdef const uint8_t* end
    cdef const uint8_t* record_end
    cdef const uint8_t* key_at
    cdef Header header
    cdef bytes key, value
    cdef int32_t row
    cdef int kind, known_kind = -1  # the first two bytes of a key
    cdef bint is_straight = False
    while True:
        left = size - position
        if left < BATCH_HEADER:
            break
        read_header(start + position, &header)
        if (
            header.magic != BATCH_MAGIC
            or header.length < BATCH_HEADER - BATCH_OVERHEAD
            or header.length > left - BATCH_OVERHEAD
            or header.base_offset < 0
            or header.base_offset > OFFSET_LIMIT
            or not has_its_crc(start + position, &header)
        ):
            raise damaged(header.base_offset)
        if header.attributes & (COMPRESSION_BITS | CONTROL_BIT):
            break
        at = start + position + BATCH_HEADER
        end = start + position + BATCH_OVERHEAD + header.length
        for row in range(header.count):
            if not read_varint(&at, end, &record_size) or not 0 < record_size <= end - at:
                raise damaged(header.base_offset)
            record_end = at + record_size
            at += 1  # the attributes
            if (
                not read_varint(&at, record_end, &passed)  # the time
                or not read_varint(&at, record_end, &offset_delta)
                or not read_varint(&at, record_end, &key_size)
            ):
                raise damaged(header.base_offset)
            key_at = at
            if key_size > 0:
                if key_size > record_end - at:
                    raise damaged(header.base_offset)
                at += key_size
            # One byte more is there: the count of headers.
            if not read_varint(&at, record_end, &value_size) or max(value_size, 0) >= record_end - at:
                raise damaged(header.base_offset)
            if key_size >= 0 and offset_delta >= from_offset - header.base_offset:
                key = PyBytes_FromStringAndSize(<const char*>key_at, key_size)
                value = None
                if value_size >= 0:
                    value = PyBytes_FromStringAndSize(<const char*>at, value_size)
                kind = -2
                if key_size >= 2:
                    kind = (key_at[0] << 8) | key_at[1]
                if kind != known_kind:
                    is_straight = key[:2] in straight
                    known_kind = kind if kind >= 0 else -1
                if header.producer_id >= 0 or not is_straight:
                    if last:
                        give_last(last, steps)
                    steps.append((key, value, header.producer_id))
                elif value is not None:
                    last[key] = value
                else:
                    last.pop(key, None)
                    steps.append((key, None, header.producer_id))
            at = record_end
        next_offset = max(next_offset, header.base_offset + header.last_delta + 1)
        position += BATCH_OVERHEAD + header.length
    return position, next_offset
