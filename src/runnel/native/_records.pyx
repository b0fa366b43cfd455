# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""The record decoder, compiled. `_records_py.py` is its twin and describes the layout.

The loops run without the GIL over C pointers. A pointer is advanced only after its distance to
the end was compared with the size asked for, so no hostile length is ever added to it. Columns
grow between records: a loop that lacks room returns ROOM with nothing of that record written.
"""

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytearray cimport PyByteArray_AS_STRING, PyByteArray_FromStringAndSize, PyByteArray_Resize
from libc.stdint cimport INT64_MAX, int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy, memset

from runnel.native._varints cimport put_varlong, varlong_size

from runnel.native import faults
from runnel.native.columns import BinaryColumn, HeaderColumns
from runnel.wire.batch import LOG_APPEND_TIME as LOG_APPEND_TIME_BIT

cdef int LOG_APPEND_TIME = LOG_APPEND_TIME_BIT

cdef enum Status:
    OK = 0
    TRUNCATED = 1
    VARINT = 2
    LENGTH = 3
    KEY = 4
    VALUE = 5
    HEADER_COUNT = 6
    HEADER = 7
    SURPLUS = 8
    OFFSET_DELTA = 9
    NOT_CONSECUTIVE = 10
    NO_KEY = 11
    TRAILING = 12
    ROOM = 100
    STOPPED = 101

cdef enum:
    NO_TIMESTAMP = -1

for name, number in (
    ("TRUNCATED", TRUNCATED),
    ("VARINT", VARINT),
    ("LENGTH", LENGTH),
    ("KEY", KEY),
    ("VALUE", VALUE),
    ("HEADER_COUNT", HEADER_COUNT),
    ("HEADER", HEADER),
    ("SURPLUS", SURPLUS),
    ("OFFSET_DELTA", OFFSET_DELTA),
    ("NOT_CONSECUTIVE", NOT_CONSECUTIVE),
    ("NO_KEY", NO_KEY),
    ("TRAILING", TRAILING),
):
    assert getattr(faults, name) == number, name


cdef struct Fields:
    int64_t timestamp_delta
    int32_t offset_delta
    int32_t key_size
    int32_t value_size
    int32_t header_count
    const uint8_t* key
    const uint8_t* value
    const uint8_t* headers
    int64_t header_key_bytes
    int64_t header_value_bytes


cdef struct Batch:
    const uint8_t* at
    const uint8_t* end
    int64_t base_offset
    int64_t last_offset_delta
    int64_t base_timestamp
    int64_t max_timestamp
    bint log_append_time
    int64_t record_count
    int64_t index  # of the record that `at` points to


cdef struct Binary:  # a growing BinaryColumn: what is written, and what there is room for
    bint copied
    int64_t rows_room
    int64_t size
    int64_t size_room
    uint8_t* validity
    int32_t* ends
    uint8_t* data


cdef struct Sink:
    int64_t rows
    int64_t rows_room  # the least of all columns with a value per row
    int64_t data_bytes
    int64_t header_rows
    int64_t* offsets
    int64_t* timestamps
    int32_t* list_ends
    bint with_headers
    Binary keys
    Binary values
    Binary header_keys
    Binary header_values


cdef inline int read_varint(
    const uint8_t** at, const uint8_t* end, int32_t* out
) noexcept nogil:
    cdef uint32_t value
    cdef uint8_t byte
    cdef int shift
    if at[0] == end:
        return TRUNCATED
    byte = at[0][0]
    at[0] += 1
    value = byte & 0x7F
    shift = 7
    while byte & 0x80:
        if shift == 35:
            return VARINT
        if at[0] == end:
            return TRUNCATED
        byte = at[0][0]
        at[0] += 1
        value |= <uint32_t>(byte & 0x7F) << shift
        shift += 7
    out[0] = <int32_t>((value >> 1) ^ (0 - (value & 1)))
    return OK


cdef inline int read_varlong(
    const uint8_t** at, const uint8_t* end, int64_t* out
) noexcept nogil:
    cdef uint64_t value
    cdef uint8_t byte
    cdef int shift
    if at[0] == end:
        return TRUNCATED
    byte = at[0][0]
    at[0] += 1
    value = byte & 0x7F
    shift = 7
    while byte & 0x80:
        if shift == 70:
            return VARINT
        if at[0] == end:
            return TRUNCATED
        byte = at[0][0]
        at[0] += 1
        value |= <uint64_t>(byte & 0x7F) << shift
        shift += 7
    out[0] = <int64_t>((value >> 1) ^ (0 - (value & 1)))
    return OK


cdef inline int read_bytes(
    const uint8_t** at, const uint8_t* end, int32_t* size, const uint8_t** start, int fault
) noexcept nogil:
    cdef int status = read_varint(at, end, size)
    if status != OK:
        return status
    if size[0] > end - at[0]:
        return fault
    start[0] = at[0]
    if size[0] > 0:
        at[0] += size[0]
    return OK


cdef int read_headers(const uint8_t** at, const uint8_t* end, Fields* fields) noexcept nogil:
    cdef int status
    cdef int32_t i, size
    cdef const uint8_t* start
    for i in range(fields.header_count):
        status = read_bytes(at, end, &size, &start, HEADER)
        if status != OK:
            return status
        if size < 0:
            return HEADER
        fields.header_key_bytes += size
        status = read_bytes(at, end, &size, &start, HEADER)
        if status != OK:
            return status
        if size > 0:
            fields.header_value_bytes += size
    return OK


cdef inline int read_record(Batch* batch, Fields* fields) noexcept nogil:
    """Advances `batch` past the record only if all of it is sound."""
    cdef const uint8_t* at = batch.at
    cdef const uint8_t* end
    cdef const uint8_t* after
    cdef int32_t size
    cdef int status = read_varint(&at, batch.end, &size)
    if status != OK:
        return status
    if size < 0 or size > batch.end - at:
        return LENGTH
    end = at + size
    if size == 0:
        return TRUNCATED
    at += 1
    status = read_varlong(&at, end, &fields.timestamp_delta)
    if status != OK:
        return status
    status = read_varint(&at, end, &fields.offset_delta)
    if status != OK:
        return status
    status = read_bytes(&at, end, &fields.key_size, &fields.key, KEY)
    if status != OK:
        return status
    status = read_bytes(&at, end, &fields.value_size, &fields.value, VALUE)
    if status != OK:
        return status
    status = read_varint(&at, end, &fields.header_count)
    if status != OK:
        return status
    if fields.header_count < 0 or fields.header_count > (end - at) // 2:
        return HEADER_COUNT
    fields.headers = at
    fields.header_key_bytes = 0
    fields.header_value_bytes = 0
    if fields.header_count > 0:
        after = at  # a copy, so that `at` itself can stay in a register
        status = read_headers(&after, end, fields)
        if status != OK:
            return status
        at = after
    if at != end:
        return SURPLUS
    if fields.offset_delta < 0 or fields.offset_delta > batch.last_offset_delta:
        return OFFSET_DELTA
    batch.at = at
    batch.index += 1
    return OK


cdef inline int64_t timestamp_of(Batch* batch, Fields* fields) noexcept nogil:
    if batch.log_append_time:
        return batch.max_timestamp
    return <int64_t>(<uint64_t>batch.base_timestamp + <uint64_t>fields.timestamp_delta)


cdef inline void put(
    Binary* column, int64_t row, const uint8_t* start, int32_t size
) noexcept nogil:
    if size >= 0:
        column.validity[row >> 3] |= <uint8_t>(1 << (row & 7))
        if column.copied:
            memcpy(column.data + column.size, start, size)
            column.size += size
    if column.copied:
        column.ends[row + 1] = <int32_t>column.size


cdef inline bint headers_fit(Sink* sink, Fields* fields) noexcept nogil:
    cdef int64_t rows = sink.header_rows + fields.header_count
    return (
        rows <= sink.header_keys.rows_room
        and rows <= sink.header_values.rows_room
        and sink.header_keys.size + fields.header_key_bytes <= sink.header_keys.size_room
        and sink.header_values.size + fields.header_value_bytes <= sink.header_values.size_room
    )


cdef void put_headers(Sink* sink, const uint8_t* end, Fields* fields) noexcept nogil:
    """Copies what read_headers found sound."""
    cdef const uint8_t* at = fields.headers
    cdef const uint8_t* start = at
    cdef int32_t i, size = 0
    for i in range(fields.header_count):
        read_bytes(&at, end, &size, &start, HEADER)
        put(&sink.header_keys, sink.header_rows, start, size)
        read_bytes(&at, end, &size, &start, HEADER)
        put(&sink.header_values, sink.header_rows, start, size)
        sink.header_rows += 1


cdef int fill(
    Sink* sink,
    Batch* from_batch,
    int64_t from_offset,
    int64_t up_to_offset,
    int64_t max_records,
    int64_t max_bytes,
    Fields* last_fields,
    int64_t* stopped_at,
) noexcept nogil:
    """Works on copies of the structs, which the compiler can keep in registers."""
    cdef Batch batch = from_batch[0]
    cdef Binary keys = sink.keys
    cdef Binary values = sink.values
    cdef Fields fields
    cdef const uint8_t* start
    cdef bint with_headers = sink.with_headers
    cdef int64_t* offsets = sink.offsets
    cdef int64_t* timestamps = sink.timestamps
    cdef int64_t rows = sink.rows
    cdef int64_t rows_room = sink.rows_room
    cdef int64_t data_bytes = sink.data_bytes
    cdef int64_t offset, size, key_size, value_size
    cdef int status = OK
    while batch.index < batch.record_count:
        start = batch.at
        status = read_record(&batch, &fields)
        if status != OK:
            break
        offset = batch.base_offset + fields.offset_delta
        if offset < from_offset:
            continue
        key_size = fields.key_size if keys.copied and fields.key_size > 0 else 0
        value_size = fields.value_size if values.copied and fields.value_size > 0 else 0
        size = key_size + value_size
        if with_headers:
            size += fields.header_key_bytes + fields.header_value_bytes
        if (
            offset >= up_to_offset
            or rows >= max_records
            or (rows > 0 and data_bytes + size > max_bytes)
        ):
            stopped_at[0] = offset
            status = STOPPED
            break
        if (
            rows >= rows_room
            or keys.size + key_size > keys.size_room
            or values.size + value_size > values.size_room
            or (with_headers and fields.header_count > 0 and not headers_fit(sink, &fields))
        ):
            batch.at = start
            batch.index -= 1
            last_fields[0] = fields
            status = ROOM
            break
        offsets[rows] = offset
        timestamps[rows] = timestamp_of(&batch, &fields)
        put(&keys, rows, fields.key, fields.key_size)
        put(&values, rows, fields.value, fields.value_size)
        rows += 1
        if with_headers:
            if fields.header_count > 0:
                put_headers(sink, batch.at, &fields)
            sink.list_ends[rows] = <int32_t>sink.header_rows
        data_bytes += size
    else:
        if batch.at != batch.end:
            status = TRAILING
    from_batch[0] = batch
    sink.keys = keys
    sink.values = values
    sink.rows = rows
    sink.data_bytes = data_bytes
    return status


cdef Batch open_batch(header, Py_buffer* payload):
    cdef Batch batch
    batch.at = <const uint8_t*>payload.buf
    batch.end = batch.at + payload.len
    batch.base_offset = header.base_offset
    batch.last_offset_delta = header.last_offset_delta
    batch.base_timestamp = header.base_timestamp
    batch.max_timestamp = header.max_timestamp
    batch.log_append_time = (header.attributes & LOG_APPEND_TIME) != 0
    batch.record_count = header.record_count
    batch.index = 0
    return batch


cdef void* room_for(bytearray buffer, int64_t size) except NULL:
    """At least `size` bytes, twice the old size if that is more, so that growth is seldom."""
    cdef int64_t old = len(buffer)
    if size > old:
        PyByteArray_Resize(buffer, max(size, 2 * old))
    return PyByteArray_AS_STRING(buffer)


def unwritten(Py_ssize_t size):
    """A buffer whose content nobody reads before writing it."""
    return PyByteArray_FromStringAndSize(NULL, size)


cdef class ColumnBuffers:
    """The memory of one Binary."""

    cdef bytearray validity, ends, data

    def __cinit__(self):
        self.validity = bytearray()
        self.ends = bytearray(4)  # the first end is 0
        self.data = bytearray()

    cdef int make_room(self, Binary* column, int64_t rows, int64_t size) except -1:
        """For `rows` and `size` bytes in all."""
        cdef int64_t old = len(self.validity)
        column.validity = <uint8_t*>room_for(self.validity, (rows + 7) // 8)
        memset(column.validity + old, 0, len(self.validity) - old)
        column.rows_room = len(self.validity) * 8
        if column.copied:
            column.ends = <int32_t*>room_for(self.ends, (rows + 1) * 4)
            column.rows_room = min(column.rows_room, <int64_t>len(self.ends) // 4 - 1)
            column.data = <uint8_t*>room_for(self.data, size)
            column.size_room = len(self.data)
        return 0

    cdef finish(self, Binary* column, int64_t rows):
        PyByteArray_Resize(self.validity, (rows + 7) // 8)
        PyByteArray_Resize(self.ends, (rows + 1) * 4 if column.copied else 0)
        PyByteArray_Resize(self.data, column.size)
        present = int.from_bytes(self.validity, "little").bit_count()
        return BinaryColumn(self.validity, rows - present, self.ends, self.data)


cdef class Columns:
    """Rows appended batch by batch. After an exception the object is of no use any more."""

    cdef Sink sink
    cdef int64_t likely_bytes
    cdef bytearray offsets, timestamps, list_ends
    cdef ColumnBuffers keys, values, header_keys, header_values

    def __cinit__(self, bint keys, bint values, bint headers, int64_t likely_bytes=0):
        self.likely_bytes = likely_bytes
        memset(&self.sink, 0, sizeof(Sink))
        self.sink.keys.copied = keys
        self.sink.values.copied = values
        self.sink.with_headers = headers
        self.sink.header_keys.copied = True
        self.sink.header_values.copied = True
        self.offsets = bytearray()
        self.timestamps = bytearray()
        self.list_ends = bytearray(4)
        self.keys = ColumnBuffers()
        self.values = ColumnBuffers()
        self.header_keys = ColumnBuffers()
        self.header_values = ColumnBuffers()

    @property
    def row_count(self):
        return self.sink.rows

    @property
    def data_bytes(self):
        return self.sink.data_bytes

    def append(
        self,
        header,
        payload,
        int64_t from_offset,
        int64_t up_to_offset,
        int64_t max_records,
        int64_t max_bytes,
    ):
        """Read one batch; the offset of the record it stopped before, or -1 at its end.

        It stops at `up_to_offset`, at `max_records` rows in all and before the data grow beyond
        `max_bytes`, though never before the first row.
        """
        cdef Py_buffer view
        cdef Batch batch
        cdef int64_t stopped_at = -1
        cdef int status
        PyObject_GetBuffer(payload, &view, PyBUF_SIMPLE)
        try:
            batch = open_batch(header, &view)
            status = self.fill_from(
                &batch, from_offset, up_to_offset, max_records, max_bytes, &stopped_at
            )
        finally:
            PyBuffer_Release(&view)
        if status == STOPPED:
            return stopped_at
        if status != OK:
            raise faults.fault(status, batch.index, batch.base_offset)
        return -1

    cdef int reserve(self, Batch* batch, int64_t max_records, int64_t max_bytes) except -1:
        """Room for what the batch probably holds; memory not touched costs nothing."""
        cdef int64_t rows = max(0, min(batch.record_count, max_records - self.sink.rows))
        cdef int64_t size = max(0, min(batch.end - batch.at, max_bytes - self.sink.data_bytes))
        if self.sink.rows == 0:
            size = max(size, min(self.likely_bytes, max_bytes))
        self.make_rows(rows)
        self.values.make_room(&self.sink.values, self.sink.rows + rows, self.sink.values.size + size)
        return 0

    cdef int make_rows(self, int64_t rows) except -1:
        """Room for that many more in every column with a value per row."""
        cdef int64_t total = self.sink.rows + rows
        self.sink.offsets = <int64_t*>room_for(self.offsets, total * 8)
        self.sink.timestamps = <int64_t*>room_for(self.timestamps, total * 8)
        self.keys.make_room(&self.sink.keys, total, self.sink.keys.size)
        self.values.make_room(&self.sink.values, total, self.sink.values.size)
        self.sink.rows_room = min(
            <int64_t>len(self.offsets) // 8,
            <int64_t>len(self.timestamps) // 8,
            self.sink.keys.rows_room,
            self.sink.values.rows_room,
        )
        if self.sink.with_headers:
            self.sink.list_ends = <int32_t*>room_for(self.list_ends, (total + 1) * 4)
            self.sink.rows_room = min(self.sink.rows_room, <int64_t>len(self.list_ends) // 4 - 1)
        return 0

    cdef int make_room(self, Fields* fields) except -1:
        """For the one record that did not fit."""
        cdef Sink* sink = &self.sink
        cdef int64_t header_rows = sink.header_rows + fields.header_count
        self.make_rows(1)
        self.keys.make_room(&sink.keys, sink.rows + 1, sink.keys.size + max(0, fields.key_size))
        self.values.make_room(
            &sink.values, sink.rows + 1, sink.values.size + max(0, fields.value_size)
        )
        if sink.with_headers:
            self.header_keys.make_room(
                &sink.header_keys, header_rows, sink.header_keys.size + fields.header_key_bytes
            )
            self.header_values.make_room(
                &sink.header_values, header_rows, sink.header_values.size + fields.header_value_bytes
            )
        return 0

    def append_run(
        self,
        data,
        int64_t position,
        int64_t from_offset,
        int64_t up_to_offset,
        int64_t max_records,
        int64_t max_bytes,
        crc32c,
    ):
        """Read the batch at `position` and those after it that a reader treats alike.

        Where the run ended, the offset after its last batch, the offset of the record it stopped
        before or -1, and the bytes of records. It ends before a batch that is compressed, a
        control batch or not sound, which is left to the caller, before one of another kind of
        timestamp, and before that of another producer where they are transactional.
        """
        cdef Py_buffer view
        cdef Batch batch
        cdef int64_t size, next_offset = from_offset, stopped_at = -1, payload_bytes = 0
        cdef int status = OK, attributes = 0, first_attributes = -1
        cdef uint64_t first_producer = 0
        cdef const uint8_t* start
        cdef const uint8_t* at
        whole = memoryview(data)
        PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
        try:
            start = <const uint8_t*>view.buf
            while self.sink.rows < max_records:
                at = start + position
                size = plain_batch(at, view.len - position, &batch, &attributes, NOT_IN_RUN)
                if (
                    size == 0
                    or batch.base_offset >= up_to_offset
                    or batch.base_offset > INT64_MAX - 1 - batch.last_offset_delta
                    or batch.record_count > (batch.end - batch.at) // RECORD_BYTES_MIN
                ):
                    break
                if first_attributes < 0:
                    first_attributes = attributes
                    first_producer = big_endian(at + 43, 8)
                elif attributes != first_attributes or (
                    attributes & TRANSACTIONAL and big_endian(at + 43, 8) != first_producer
                ):
                    break
                if batch.base_offset + batch.last_offset_delta >= from_offset:
                    if crc32c is not None and crc32c(
                        whole[position + 21 : position + size]
                    ) != big_endian(at + 17, 4):
                        break
                    payload_bytes += batch.end - batch.at
                    status = self.fill_from(
                        &batch, from_offset, up_to_offset, max_records, max_bytes, &stopped_at
                    )
                    if status != OK:
                        break
                next_offset = max(next_offset, batch.base_offset + batch.last_offset_delta + 1)
                position += size
        finally:
            PyBuffer_Release(&view)
        if status != OK and status != STOPPED:
            raise faults.fault(status, batch.index, batch.base_offset)
        return position, next_offset, stopped_at, payload_bytes

    cdef int fill_from(
        self,
        Batch* batch,
        int64_t from_offset,
        int64_t up_to_offset,
        int64_t max_records,
        int64_t max_bytes,
        int64_t* stopped_at,
    ) except -1:
        cdef Fields fields
        cdef int status
        self.reserve(batch, max_records, max_bytes)
        while True:
            with nogil:
                status = fill(
                    &self.sink, batch, from_offset, up_to_offset, max_records, max_bytes,
                    &fields, stopped_at,
                )
            if status != ROOM:
                return status
            self.make_room(&fields)

    def finish(self):
        headers = None
        if self.sink.with_headers:
            PyByteArray_Resize(self.list_ends, (self.sink.rows + 1) * 4)
            headers = HeaderColumns(
                self.list_ends,
                self.header_keys.finish(&self.sink.header_keys, self.sink.header_rows),
                self.header_values.finish(&self.sink.header_values, self.sink.header_rows),
            )
        PyByteArray_Resize(self.offsets, self.sink.rows * 8)
        PyByteArray_Resize(self.timestamps, self.sink.rows * 8)
        return (
            self.offsets,
            self.timestamps,
            self.keys.finish(&self.sink.keys, self.sink.rows),
            self.values.finish(&self.sink.values, self.sink.rows),
            headers,
        )


cdef int scan_batch(
    Batch* batch, bint consecutive, bint require_keys, int64_t* least, int64_t* greatest,
    int64_t* offset_of_greatest,
) noexcept nogil:
    cdef Fields fields
    cdef int status
    cdef int64_t timestamp
    while batch.index < batch.record_count:
        status = read_record(batch, &fields)
        if status != OK:
            return status
        if consecutive and fields.offset_delta != batch.index - 1:
            batch.index -= 1
            return NOT_CONSECUTIVE
        if require_keys and fields.key_size < 0:
            batch.index -= 1
            return NO_KEY
        timestamp = timestamp_of(batch, &fields)
        if timestamp > greatest[0]:
            greatest[0] = timestamp
            offset_of_greatest[0] = batch.base_offset + fields.offset_delta
        if timestamp != NO_TIMESTAMP and (least[0] == NO_TIMESTAMP or timestamp < least[0]):
            least[0] = timestamp
    return TRAILING if batch.at != batch.end else OK


def scan(header, payload, bint consecutive, bint require_keys):
    """Check every record; the least and the greatest timestamp, and the offset of the latter.

    Records without a timestamp (-1) do not count for the least. The first of equals wins.
    """
    cdef Py_buffer view
    cdef Batch batch
    cdef int status
    cdef int64_t least = NO_TIMESTAMP, greatest = NO_TIMESTAMP, offset_of_greatest = -1
    PyObject_GetBuffer(payload, &view, PyBUF_SIMPLE)
    try:
        batch = open_batch(header, &view)
        with nogil:
            status = scan_batch(
                &batch, consecutive, require_keys, &least, &greatest, &offset_of_greatest
            )
    finally:
        PyBuffer_Release(&view)
    if status != OK:
        raise faults.fault(status, batch.index, batch.base_offset)
    return least, greatest, offset_of_greatest


def find(header, payload, int64_t timestamp, int64_t from_offset):
    """Offset and timestamp of the first record from `from_offset` on that is not earlier."""
    cdef Py_buffer view
    cdef Batch batch
    cdef Fields fields
    cdef int status = OK
    cdef int64_t offset = -1, at = -1
    PyObject_GetBuffer(payload, &view, PyBUF_SIMPLE)
    try:
        batch = open_batch(header, &view)
        with nogil:
            while batch.index < batch.record_count:
                status = read_record(&batch, &fields)
                if status != OK:
                    break
                at = timestamp_of(&batch, &fields)
                offset = batch.base_offset + fields.offset_delta
                if at >= timestamp and offset >= from_offset:
                    status = STOPPED
                    break
            else:
                if batch.at != batch.end:
                    status = TRAILING
    finally:
        PyBuffer_Release(&view)
    if status == STOPPED:
        return offset, at
    if status != OK:
        raise faults.fault(status, batch.index, batch.base_offset)
    return None


# What compaction needs: the last offset of each key, and the records that are left.

cdef extern from *:
    """
    static inline unsigned long long high_product(unsigned long long a, unsigned long long b) {
        return (unsigned long long)(((unsigned __int128)a * b) >> 64);
    }
    """
    uint64_t high_product(uint64_t a, uint64_t b) noexcept nogil


cdef struct KeyOffset:
    uint64_t first
    uint64_t second
    int64_t next_offset  # 0 in a slot that is free


cdef struct Kept:
    int64_t count
    int64_t tombstones
    int64_t max_timestamp
    int64_t size


cdef inline uint64_t rotated(uint64_t value, int count) noexcept nogil:
    return (value << count) | (value >> (64 - count))


cdef inline void sip_round(uint64_t* v) noexcept nogil:
    v[0] += v[1]
    v[1] = rotated(v[1], 13) ^ v[0]
    v[0] = rotated(v[0], 32)
    v[2] += v[3]
    v[3] = rotated(v[3], 16) ^ v[2]
    v[0] += v[3]
    v[3] = rotated(v[3], 21) ^ v[0]
    v[2] += v[1]
    v[1] = rotated(v[1], 17) ^ v[2]
    v[2] = rotated(v[2], 32)


cdef inline void hash_key(
    const uint8_t* key, int64_t size, const uint64_t* seed, uint64_t* first, uint64_t* second
) noexcept nogil:
    """SipHash-1-3 with 128 bits: whoever does not know the seed finds no two keys of one hash."""
    cdef uint64_t v[4]
    cdef uint64_t word
    cdef int64_t left = size
    cdef int i
    v[0] = seed[0] ^ 0x736F6D6570736575ULL
    v[1] = seed[1] ^ 0x646F72616E646F6DULL ^ 0xEE
    v[2] = seed[0] ^ 0x6C7967656E657261ULL
    v[3] = seed[1] ^ 0x7465646279746573ULL
    while left >= 8:
        memcpy(&word, key, 8)
        v[3] ^= word
        sip_round(v)
        v[0] ^= word
        key += 8
        left -= 8
    word = 0
    memcpy(&word, key, left)
    word |= <uint64_t>size << 56
    v[3] ^= word
    sip_round(v)
    v[0] ^= word
    v[2] ^= 0xEE
    for i in range(3):
        sip_round(v)
    first[0] = v[0] ^ v[1] ^ v[2] ^ v[3]
    v[1] ^= 0xDD
    for i in range(3):
        sip_round(v)
    second[0] = v[0] ^ v[1] ^ v[2] ^ v[3]


cdef enum:
    BATCH_HEADER = 61
    BATCH_OVERHEAD = 12
    BATCH_MAGIC = 2
    NOT_PLAIN = 0x37  # compressed, transactional or control
    NOT_IN_RUN = 0x27  # compressed or control
    TRANSACTIONAL = 0x10
    RECORD_BYTES_MIN = 7
    HORIZON = 0x40


cdef inline uint64_t big_endian(const uint8_t* at, int size) noexcept nogil:
    cdef uint64_t value = 0
    cdef int i
    for i in range(size):
        value = (value << 8) | at[i]
    return value


cdef inline void put_big_endian(uint8_t* at, int size, uint64_t value) noexcept nogil:
    cdef int i
    for i in range(size):
        at[size - 1 - i] = <uint8_t>value
        value >>= 8


cdef inline int64_t plain_batch(
    const uint8_t* at, int64_t left, Batch* batch, int* attributes, int refused=NOT_PLAIN
) noexcept nogil:
    """The size of the whole batch at `at` with none of the attributes refused, else 0."""
    cdef int64_t size, count
    if left < BATCH_HEADER or at[16] != BATCH_MAGIC:
        return 0
    size = <int32_t>big_endian(at + 8, 4)
    size += BATCH_OVERHEAD
    attributes[0] = <int>big_endian(at + 21, 2)
    if size < BATCH_HEADER or size > left or attributes[0] & refused:
        return 0
    count = <int32_t>big_endian(at + 57, 4)
    batch.base_offset = <int64_t>big_endian(at, 8)
    batch.last_offset_delta = <int32_t>big_endian(at + 23, 4)
    batch.base_timestamp = <int64_t>big_endian(at + 27, 8)
    batch.max_timestamp = <int64_t>big_endian(at + 35, 8)
    if count <= 0 or batch.base_offset < 0 or batch.last_offset_delta < 0:
        return 0
    batch.at = at + BATCH_HEADER
    batch.end = at + size
    batch.log_append_time = (attributes[0] & LOG_APPEND_TIME) != 0
    batch.record_count = count
    batch.index = 0
    return size


cdef class OffsetMap:
    """The last offset of each key, by a hash of 128 bits, in a table of fixed size."""

    cdef KeyOffset* table
    cdef uint64_t slots
    cdef uint64_t seed[2]
    cdef readonly int64_t key_count
    cdef readonly int64_t key_count_max

    def __cinit__(self, int64_t slots, double load_factor, bytes seed):
        assert slots > 1 and 0 < load_factor < 1 and len(seed) == 16
        self.slots = slots
        self.key_count_max = max(1, <int64_t>(slots * load_factor))
        self.key_count = 0
        memcpy(self.seed, <const uint8_t*>seed, 16)
        self.table = <KeyOffset*>calloc(slots, sizeof(KeyOffset))  # pages come as they are used
        if self.table == NULL:
            raise MemoryError

    def __dealloc__(self):
        free(self.table)

    cdef inline KeyOffset* slot_of(self, const uint8_t* key, int64_t size) noexcept nogil:
        """Where the key is, or the free slot where it would be. One is always free."""
        cdef KeyOffset wanted
        cdef KeyOffset* at
        hash_key(key, size, self.seed, &wanted.first, &wanted.second)
        at = self.table + high_product(wanted.first, self.slots)
        while at.next_offset != 0 and (at.first != wanted.first or at.second != wanted.second):
            at += 1
            if at == self.table + self.slots:
                at = self.table
        if at.next_offset == 0:
            at.first = wanted.first
            at.second = wanted.second
        return at

    cdef int add_batch(self, Batch* batch, int64_t from_offset, int64_t* left) noexcept nogil:
        cdef Fields fields
        cdef KeyOffset* slot
        cdef int status
        cdef int64_t offset
        left[0] = -1
        while batch.index < batch.record_count:
            status = read_record(batch, &fields)
            if status != OK:
                return status
            offset = batch.base_offset + fields.offset_delta
            if fields.key_size < 0 or offset < from_offset:
                continue
            slot = self.slot_of(fields.key, fields.key_size)
            if slot.next_offset == 0:
                if self.key_count >= self.key_count_max:
                    left[0] = offset
                    return OK
                self.key_count += 1
            slot.next_offset = offset + 1
        return TRAILING if batch.at != batch.end else OK

    def add(self, header, payload, int64_t from_offset):
        """Remember the keys of a batch; the offset of the first that found no room, or -1."""
        cdef Py_buffer view
        cdef Batch batch
        cdef int64_t left
        cdef int status
        PyObject_GetBuffer(payload, &view, PyBUF_SIMPLE)
        try:
            batch = open_batch(header, &view)
            with nogil:
                status = self.add_batch(&batch, from_offset, &left)
        finally:
            PyBuffer_Release(&view)
        if status != OK:
            raise faults.fault(status, batch.index, batch.base_offset)
        return left

    cdef int retain_batch(
        self, Batch* batch, int64_t up_to_offset, bint drop_tombstones, uint8_t* out, Kept* kept
    ) noexcept nogil:
        """Copies the records that stay to `out`, which has room for all of them."""
        cdef Fields fields
        cdef KeyOffset* slot
        cdef const uint8_t* start
        cdef const uint8_t* run = batch.at  # the first byte of those that are not copied yet
        cdef int status
        cdef int64_t offset, timestamp
        memset(kept, 0, sizeof(Kept))
        kept.max_timestamp = NO_TIMESTAMP
        while batch.index < batch.record_count:
            start = batch.at
            status = read_record(batch, &fields)
            if status != OK:
                return status
            offset = batch.base_offset + fields.offset_delta
            if offset < up_to_offset:
                if fields.key_size >= 0:
                    slot = self.slot_of(fields.key, fields.key_size)
                if (
                    fields.key_size < 0
                    or offset + 1 < slot.next_offset
                    or (fields.value_size < 0 and drop_tombstones)
                ):
                    memcpy(out + kept.size, run, start - run)
                    kept.size += start - run
                    run = batch.at
                    continue
            kept.count += 1
            if fields.value_size < 0:
                kept.tombstones += 1
            timestamp = timestamp_of(batch, &fields)
            if timestamp > kept.max_timestamp:
                kept.max_timestamp = timestamp
        memcpy(out + kept.size, run, batch.at - run)
        kept.size += batch.at - run
        return TRAILING if batch.at != batch.end else OK

    def retain(self, header, payload, int64_t up_to_offset, bint drop_tombstones):
        """The records that stay: count, tombstones among them, largest timestamp, their bytes.

        Of those before `up_to_offset` a record stays if the map knows no later one of its key;
        one without a key does not.
        """
        cdef Py_buffer view
        cdef Batch batch
        cdef Kept kept
        cdef int status
        out = PyByteArray_FromStringAndSize(NULL, len(payload))
        cdef uint8_t* target = <uint8_t*>PyByteArray_AS_STRING(out)
        PyObject_GetBuffer(payload, &view, PyBUF_SIMPLE)
        try:
            batch = open_batch(header, &view)
            with nogil:
                status = self.retain_batch(&batch, up_to_offset, drop_tombstones, target, &kept)
        finally:
            PyBuffer_Release(&view)
        if status != OK:
            raise faults.fault(status, batch.index, batch.base_offset)
        PyByteArray_Resize(out, kept.size)
        return kept.count, kept.tombstones, kept.max_timestamp, out

    def add_plain(self, chunk, int64_t position, int64_t from_offset, crc32c):
        """`add` for a run of batches that need no other look.

        The position after the last of them, and the offset of the first key that found no room or
        -1. A batch with a wrong CRC ends the run.
        """
        cdef Py_buffer view
        cdef Batch batch
        cdef int64_t size, left = -1
        cdef int status = OK, attributes = 0
        cdef const uint8_t* start
        whole = memoryview(chunk)
        PyObject_GetBuffer(chunk, &view, PyBUF_SIMPLE)
        try:
            start = <const uint8_t*>view.buf
            while left < 0:
                size = plain_batch(start + position, view.len - position, &batch, &attributes)
                if size == 0:
                    break
                if crc32c(whole[position + 21 : position + size]) != big_endian(
                    start + position + 17, 4
                ):
                    break
                if batch.base_offset + batch.last_offset_delta >= from_offset:
                    status = self.add_batch(&batch, from_offset, &left)
                    if status != OK:
                        break
                position += size
        finally:
            PyBuffer_Release(&view)
        if status != OK:
            raise faults.fault(status, batch.index, batch.base_offset)
        return position, left

    def retain_plain(
        self,
        chunk,
        int64_t position,
        int64_t up_to_offset,
        int64_t end_offset,
        int64_t now_ms,
        producers,
        crc32c,
        int64_t interval_bytes,
        target,
    ):
        """`retain` for a run of batches whose fate is plain: where it ended, and what is left.

        Left to the caller are batches that would become empty and may have to stay, those that
        get a delete horizon, and all that `add_plain` leaves. `target` says where the new segment
        is: its size, the position indexed last, its largest time and the offset of that. The new
        position, the bytes, the index entries (offset, position, time, offset of it), the target.
        """
        cdef Py_buffer view
        cdef Batch batch
        cdef Kept kept
        cdef int64_t size, last_offset, max_timestamp, written = 0
        cdef int64_t at, indexed_at, greatest, greatest_offset
        cdef int status = OK, attributes = 0
        cdef bint has_horizon
        cdef const uint8_t* raw
        cdef uint8_t* out
        at, indexed_at, greatest, greatest_offset = target
        whole = memoryview(chunk)
        buffer = PyByteArray_FromStringAndSize(NULL, len(whole) - position)
        out = <uint8_t*>PyByteArray_AS_STRING(buffer)
        entries = []
        PyObject_GetBuffer(chunk, &view, PyBUF_SIMPLE)
        try:
            while True:
                raw = <const uint8_t*>view.buf + position
                size = plain_batch(raw, view.len - position, &batch, &attributes)
                if size == 0:
                    break
                if crc32c(whole[position + 21 : position + size]) != big_endian(raw + 17, 4):
                    break
                has_horizon = (attributes & HORIZON) != 0
                status = self.retain_batch(
                    &batch, up_to_offset, has_horizon and batch.base_timestamp <= now_ms,
                    out + written + BATCH_HEADER, &kept,
                )
                if status != OK:
                    break
                last_offset = batch.base_offset + batch.last_offset_delta
                if kept.tombstones > 0 and not has_horizon:
                    break
                if kept.count == 0:
                    if (
                        last_offset + 1 == end_offset
                        or <int64_t>big_endian(raw + 43, 8) in producers
                    ):
                        break
                    position += size
                    continue
                if kept.count == batch.record_count:
                    memcpy(out + written, raw, BATCH_HEADER)
                    max_timestamp = batch.max_timestamp
                else:
                    memcpy(out + written, raw, BATCH_HEADER)
                    max_timestamp = batch.max_timestamp
                    if not batch.log_append_time:
                        max_timestamp = kept.max_timestamp
                    put_big_endian(out + written + 8, 4, BATCH_HEADER - BATCH_OVERHEAD + kept.size)
                    put_big_endian(out + written + 35, 8, <uint64_t>max_timestamp)
                    put_big_endian(out + written + 57, 4, kept.count)
                    put_big_endian(
                        out + written + 17,
                        4,
                        crc32c(buffer_part(buffer, written + 21, written + BATCH_HEADER + kept.size)),
                    )
                if max_timestamp > greatest:
                    greatest = max_timestamp
                    greatest_offset = last_offset
                if at - indexed_at > interval_bytes:
                    indexed_at = at
                    entries.append((last_offset, at, greatest, greatest_offset))
                written += BATCH_HEADER + kept.size
                at += BATCH_HEADER + kept.size
                position += size
        finally:
            PyBuffer_Release(&view)
        if status != OK:
            raise faults.fault(status, batch.index, batch.base_offset)
        PyByteArray_Resize(buffer, written)
        return position, buffer, entries, (at, indexed_at, greatest, greatest_offset)


cdef buffer_part(bytearray buffer, int64_t start, int64_t end):
    """A copy, so that no view of the buffer is left that would keep it from being cut."""
    return buffer[start:end]


cdef int rebase_batch(
    Batch* batch, int64_t base_timestamp, uint8_t* out, int64_t* out_size
) noexcept nogil:
    cdef Fields fields
    cdef const uint8_t* at
    cdef const uint8_t* rest
    cdef uint8_t* start = out
    cdef int32_t size
    cdef int64_t delta, old = 0
    cdef int status
    while batch.index < batch.record_count:
        at = batch.at
        status = read_record(batch, &fields)
        if status != OK:
            return status
        read_varint(&at, batch.at, &size)
        rest = at + 1
        read_varlong(&rest, batch.at, &old)
        delta = <int64_t>(
            <uint64_t>batch.base_timestamp + <uint64_t>old - <uint64_t>base_timestamp
        )
        out = put_varlong(out, 1 + varlong_size(delta) + (batch.at - rest))
        out[0] = at[0]
        out = put_varlong(out + 1, delta)
        memcpy(out, rest, batch.at - rest)
        out += batch.at - rest
    out_size[0] = out - start
    return TRAILING if batch.at != batch.end else OK


def rebased(header, payload, int64_t base_timestamp):
    """The same records, their times counted from another base."""
    cdef Py_buffer view
    cdef Batch batch
    cdef int64_t size = 0
    cdef int status
    # A time takes at most nine bytes more, and with them the length of the record one.
    out = PyByteArray_FromStringAndSize(NULL, len(payload) + 10 * header.record_count)
    cdef uint8_t* target = <uint8_t*>PyByteArray_AS_STRING(out)
    PyObject_GetBuffer(payload, &view, PyBUF_SIMPLE)
    try:
        batch = open_batch(header, &view)
        with nogil:
            status = rebase_batch(&batch, base_timestamp, target, &size)
    finally:
        PyBuffer_Release(&view)
    if status != OK:
        raise faults.fault(status, batch.index, batch.base_offset)
    PyByteArray_Resize(out, size)
    return out
