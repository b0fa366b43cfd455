# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Rows of columns to the payloads of record batches, compiled. `_payloads_py.py` is its twin.

The loops run without the GIL over C pointers into buffers that Arrow has made, which are trusted:
offsets ascend and lie within the data. What each lane has collected is memory of our own, so that
the columns may go as soon as `append` returns.
"""

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytearray cimport PyByteArray_AS_STRING, PyByteArray_FromStringAndSize
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, realloc
from libc.string cimport memcpy, memset

from runnel.native._varints cimport put_varlong, varlong_size

from runnel.native.columns import Payload

# What `fill` returns instead of a row; from NO_LANE on downwards the row is told, too.
cdef enum:
    NO_MEMORY = -1
    NO_LANE = -2

cdef struct Lane:
    uint8_t* data
    int64_t size
    int64_t room
    int64_t count
    int64_t base_timestamp
    int64_t max_timestamp


cdef struct Binary:
    const uint8_t* validity
    const int32_t* ends
    const uint8_t* data
    int64_t start  # of the rows in the buffers


cdef struct Lists:
    bint present
    const uint8_t* validity
    const int32_t* ends
    int64_t start
    Binary names
    Binary values


cdef class Held:
    """Buffers borrowed for one call: of lanes, of four columns at three each, of lists."""

    cdef Py_buffer views[16]
    cdef int count

    def __cinit__(self):
        self.count = 0

    def __dealloc__(self):
        for index in range(self.count):
            PyBuffer_Release(&self.views[index])

    cdef const uint8_t* take(self, buffer) except? NULL:
        if buffer is None:
            return NULL
        PyObject_GetBuffer(buffer, &self.views[self.count], PyBUF_SIMPLE)
        self.count += 1
        return <const uint8_t*>self.views[self.count - 1].buf

    cdef Binary binary(self, column):
        cdef Binary out
        memset(&out, 0, sizeof(Binary))
        if column is not None:
            out.validity = self.take(column.validity)
            out.ends = <const int32_t*>self.take(column.offsets)
            out.data = self.take(column.data)
            out.start = column.start
        return out


cdef inline bint is_present(Binary* column, int64_t row) noexcept nogil:
    if column.ends == NULL:
        return False
    row += column.start
    return column.validity == NULL or (column.validity[row >> 3] >> (row & 7)) & 1


cdef inline int64_t field_size(Binary* column, int64_t row) noexcept nogil:
    """With its length; a null is a length of -1."""
    cdef int64_t size
    if not is_present(column, row):
        return 1
    size = column.ends[column.start + row + 1] - column.ends[column.start + row]
    return varlong_size(size) + size


cdef inline uint8_t* put_field(uint8_t* out, Binary* column, int64_t row) noexcept nogil:
    cdef int64_t begin, size
    if not is_present(column, row):
        return put_varlong(out, -1)
    begin = column.ends[column.start + row]
    size = column.ends[column.start + row + 1] - begin
    out = put_varlong(out, size)
    if size:
        memcpy(out, column.data + begin, size)
    return out + size


cdef inline uint32_t murmur2(const uint8_t* data, int32_t size) noexcept nogil:
    cdef uint32_t m = 0x5BD1E995
    cdef uint32_t digest = 0x9747B28CU ^ <uint32_t>size
    cdef uint32_t word
    while size >= 4:
        memcpy(&word, data, 4)
        word *= m
        word ^= word >> 24
        word *= m
        digest *= m
        digest ^= word
        data += 4
        size -= 4
    if size > 0:
        if size == 3:
            digest ^= <uint32_t>data[2] << 16
        if size >= 2:
            digest ^= <uint32_t>data[1] << 8
        digest ^= data[0]
        digest *= m
    digest ^= digest >> 13
    digest *= m
    return digest ^ (digest >> 15)


def assign(keys, int64_t row_count, int32_t lane_count, int64_t keyless, int64_t run_rows):
    """The lane of each row as int32: by the hash of its key, and without one in runs of rows."""
    cdef Held held = Held()
    cdef Binary column = held.binary(keys)
    cdef int64_t row, begin
    out = PyByteArray_FromStringAndSize(NULL, 4 * row_count)
    cdef int32_t* lanes = <int32_t*>PyByteArray_AS_STRING(out)
    with nogil:
        for row in range(row_count):
            if is_present(&column, row):
                begin = column.ends[column.start + row]
                lanes[row] = <int32_t>(
                    (
                        murmur2(
                            column.data + begin,
                            <int32_t>(column.ends[column.start + row + 1] - begin),
                        )
                        & 0x7FFFFFFF
                    )
                    % <uint32_t>lane_count
                )
            else:
                lanes[row] = <int32_t>((keyless + row // run_rows) % lane_count)
    return out


cdef int make_room(Lane* lane, int64_t size) noexcept nogil:
    cdef int64_t room = lane.room
    cdef uint8_t* data
    if size <= room:
        return 0
    room = max(size, max(2 * room, <int64_t>4096))
    data = <uint8_t*>realloc(lane.data, room)
    if data == NULL:
        return -1
    lane.data = data
    lane.room = room
    return 0


cdef class Payloads:
    """The batches being collected, one per lane, none larger than the limit if it has two rows."""

    cdef Lane* lanes
    cdef int64_t lane_count, limit_bytes
    cdef readonly int64_t buffered_bytes

    def __cinit__(self, int64_t lane_count, int64_t limit_bytes):
        self.lanes = <Lane*>calloc(max(lane_count, <int64_t>1), sizeof(Lane))
        if self.lanes == NULL:
            raise MemoryError
        self.lane_count = lane_count
        self.limit_bytes = limit_bytes
        self.buffered_bytes = 0

    def __dealloc__(self):
        if self.lanes != NULL:
            for index in range(self.lane_count):
                free(self.lanes[index].data)
            free(self.lanes)

    def append(
        self, lanes, keys, values, headers, int64_t row, int64_t row_count, int64_t timestamp
    ):
        """The rows from `row` on; returns that for whose lane there is no room, or the count.

        Raises IndexError for a row of a lane that is not there.
        """
        cdef Held held = Held()
        cdef const int32_t* numbers = <const int32_t*>held.take(lanes)
        cdef Binary key = held.binary(keys)
        cdef Binary value = held.binary(values)
        cdef Lists lists
        cdef int64_t stopped
        memset(&lists, 0, sizeof(Lists))
        if headers is not None:
            lists.present = True
            lists.validity = held.take(headers.validity)
            lists.ends = <const int32_t*>held.take(headers.offsets)
            lists.start = headers.start
            lists.names = held.binary(headers.names)
            lists.values = held.binary(headers.values)
        with nogil:
            stopped = self.fill(numbers, &key, &value, &lists, row, row_count, timestamp)
        if stopped == NO_MEMORY:
            raise MemoryError
        if stopped < 0:
            raise IndexError(numbers[NO_LANE - stopped])
        return stopped

    cdef int64_t fill(
        self,
        const int32_t* numbers,
        Binary* key,
        Binary* value,
        Lists* lists,
        int64_t row,
        int64_t row_count,
        int64_t timestamp,
    ) noexcept nogil:
        cdef Lane* lane
        cdef int64_t size, total, delta, first, last, index
        cdef uint8_t* out
        while row < row_count:
            if numbers[row] < 0 or numbers[row] >= self.lane_count:
                return NO_LANE - row
            lane = &self.lanes[numbers[row]]
            if lane.count == 0:
                lane.base_timestamp = timestamp
                lane.max_timestamp = timestamp
            delta = timestamp - lane.base_timestamp
            first = last = 0
            if lists.present:
                index = lists.start + row
                if lists.validity == NULL or (lists.validity[index >> 3] >> (index & 7)) & 1:
                    first = lists.ends[index]
                    last = lists.ends[index + 1]
            size = 1 + varlong_size(delta) + varlong_size(lane.count)
            size += field_size(key, row) + field_size(value, row) + varlong_size(last - first)
            for index in range(first, last):
                size += field_size(&lists.names, index) + field_size(&lists.values, index)
            total = varlong_size(size) + size
            if lane.count and lane.size + total > self.limit_bytes:
                return row
            if make_room(lane, lane.size + total) < 0:
                return NO_MEMORY
            out = put_varlong(lane.data + lane.size, size)
            out[0] = 0  # attributes, of which none is defined
            out = put_varlong(out + 1, delta)
            out = put_varlong(out, lane.count)
            out = put_field(out, key, row)
            out = put_field(out, value, row)
            out = put_varlong(out, last - first)
            for index in range(first, last):
                out = put_field(out, &lists.names, index)
                out = put_field(out, &lists.values, index)
            lane.size += total
            lane.count += 1
            lane.max_timestamp = max(lane.max_timestamp, timestamp)
            self.buffered_bytes += total
            row += 1
        return row

    def take(self, int64_t lane):
        """What the lane has collected; it is empty then."""
        cdef Lane* found
        if not 0 <= lane < self.lane_count:
            raise IndexError(lane)
        found = &self.lanes[lane]
        if found.count == 0:
            return None
        data = PyByteArray_FromStringAndSize(<char*>found.data, found.size)
        payload = Payload(data, found.count, found.base_timestamp, found.max_timestamp)
        self.buffered_bytes -= found.size
        found.size = found.count = 0
        return payload
