# cython: language_level=3, boundscheck=False, wraparound=False, binding=False
# cython: c_line_in_traceback=False
"""What compiled codecs share; `tools/hot_codecs.py` writes all the others behind it, for a build."""

from struct import error as struct_error, pack, unpack_from

from cpython.buffer cimport (
    Py_buffer, PyBUF_SIMPLE, PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer,
)
from cpython.bytearray cimport (
    PyByteArray_AS_STRING, PyByteArray_FromStringAndSize, PyByteArray_GET_SIZE, PyByteArray_Resize,
)
from cpython.bytes cimport PyBytes_FromStringAndSize
from cpython.object cimport PyObject, PyTypeObject
from cpython.ref cimport Py_INCREF
from cpython.unicode cimport PyUnicode_DecodeUTF8
from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

from runnel.errors import WireError
from runnel.wire.primitives import (
    VersionError, ensure_tag_count, ensure_text, read_bytes, read_uvarint, refuse_array,
    refuse_null, refuse_size, skip_tags,
)
cdef extern from *:
    """
    static inline uint16_t swap16(uint16_t v) { return __builtin_bswap16(v); }
    static inline uint32_t swap32(uint32_t v) { return __builtin_bswap32(v); }
    static inline uint64_t swap64(uint64_t v) { return __builtin_bswap64(v); }
    static PyObject *bare(PyTypeObject *type, PyObject *nothing) {
        return type->tp_new(type, nothing, NULL);
    }
    typedef PyObject *(*maker)(PyObject *, PyObject **, size_t, PyObject *);
    typedef PyObject *(*asker)(PyObject *, PyObject *);
    static void be_quick(PyObject *type, maker make, asker get) {
        ((PyTypeObject *)type)->tp_vectorcall = (vectorcallfunc)make;
        ((PyTypeObject *)type)->tp_getattro = get;
        PyType_Modified((PyTypeObject *)type);
    }
    """
    ctypedef object (*maker)(object, PyObject **, size_t, PyObject *)
    ctypedef object (*asker)(object, PyObject *)
    void be_quick(object, maker, asker)
    object PyObject_GenericGetAttr(object, PyObject *)
    Py_ssize_t PyVectorcall_NARGS(size_t)
    Py_ssize_t PyTuple_GET_SIZE(PyObject *)
    PyObject *PyTuple_GET_ITEM(PyObject *, Py_ssize_t)
    uint16_t swap16(uint16_t)
    uint32_t swap32(uint32_t)
    uint64_t swap64(uint64_t)
    object bare(PyTypeObject *, object)

ABSENT = object()
READABLE = (bytes, bytearray, memoryview)
BAD_BYTES = (WireError, struct_error, IndexError, UnicodeDecodeError)
cdef tuple NOTHING = ()
reads = {}
writes = {}


cdef object slowly(object cls, PyObject **given, size_t flagged_count, PyObject *names):
    """As if there were no quick way: by position, by a name that is not interned, or wrongly."""
    cdef Py_ssize_t count = PyVectorcall_NARGS(flagged_count), index
    positional = tuple([<object>given[index] for index in range(count)])
    named = {}
    if names is not NULL:
        for index in range(PyTuple_GET_SIZE(names)):
            named[<object>PyTuple_GET_ITEM(names, index)] = <object>given[count + index]
    return type.__call__(cls, *positional, **named)


cdef inline int8_t get_b(const uint8_t *p): return <int8_t>p[0]
cdef inline uint8_t get_B(const uint8_t *p): return p[0]
cdef inline int16_t get_h(const uint8_t *p):
    cdef uint16_t v
    memcpy(&v, p, 2)
    return <int16_t>swap16(v)
cdef inline int32_t get_i(const uint8_t *p):
    cdef uint32_t v
    memcpy(&v, p, 4)
    return <int32_t>swap32(v)
cdef inline int64_t get_q(const uint8_t *p):
    cdef uint64_t v
    memcpy(&v, p, 8)
    return <int64_t>swap64(v)

cdef inline uint8_t *grown(bytearray out, Py_ssize_t more) except NULL:
    cdef Py_ssize_t size = PyByteArray_GET_SIZE(out)
    PyByteArray_Resize(out, size + more)
    return <uint8_t *>PyByteArray_AS_STRING(out) + size
cdef int write_uvarint(bytearray out, uint64_t value) except -1:
    cdef uint8_t encoded[10]
    cdef int size = 0
    while value > 0x7F:
        encoded[size] = <uint8_t>(value & 0x7F | 0x80); size += 1
        value >>= 7
    encoded[size] = <uint8_t>value; size += 1
    memcpy(grown(out, size), encoded, size)
    return 0
cdef inline void put_b(uint8_t *p, int8_t v): p[0] = <uint8_t>v
cdef inline void put_B(uint8_t *p, uint8_t v): p[0] = v
cdef inline void put_h(uint8_t *p, int16_t v):
    cdef uint16_t swapped = swap16(<uint16_t>v)
    memcpy(p, &swapped, 2)
cdef inline void put_i(uint8_t *p, int32_t v):
    cdef uint32_t swapped = swap32(<uint32_t>v)
    memcpy(p, &swapped, 4)
cdef inline void put_q(uint8_t *p, int64_t v):
    cdef uint64_t swapped = swap64(<uint64_t>v)
    memcpy(p, &swapped, 8)

cdef str text(const uint8_t *data, Py_ssize_t size, Py_ssize_t left):
    if size < 0:
        refuse_null(None, 0)
    if size > $STRING_MAX:
        raise WireError(f"string of {size} bytes")
    if size > left:
        refuse_size(size, left)
    return PyUnicode_DecodeUTF8(<const char *>data, size, NULL)

def batch_header(object buffer, Py_ssize_t position):
    cdef Py_buffer held
    cdef const uint8_t *at
    PyObject_GetBuffer(buffer, &held, PyBUF_SIMPLE)
    try:
        if position < 0 or held.len - position < 61:
            raise struct_error(f"a batch's header takes 61 bytes, not {held.len - position}")
        at = <const uint8_t *>held.buf + position
        return (
            get_q(at), get_i(at + 8), get_i(at + 12), get_b(at + 16), <uint32_t>get_i(at + 17),
            get_h(at + 21), get_i(at + 23), get_q(at + 27), get_q(at + 35), get_q(at + 43),
            get_h(at + 51), get_i(at + 53), get_i(at + 57),
        )
    finally:
        PyBuffer_Release(&held)

def stamp_batch(object buffer, Py_ssize_t position, int64_t base_offset, int32_t leader_epoch):
    cdef Py_buffer held
    cdef uint8_t *at
    PyObject_GetBuffer(buffer, &held, PyBUF_WRITABLE)
    try:
        if position < 0 or held.len - position < 61:
            raise struct_error(f"a batch's header takes 61 bytes, not {held.len - position}")
        at = <uint8_t *>held.buf + position
        put_q(at, base_offset)
        put_i(at + 12, leader_epoch)
    finally:
        PyBuffer_Release(&held)

def new_reply(Py_ssize_t size):
    out = PyByteArray_FromStringAndSize(NULL, size)
    memset(PyByteArray_AS_STRING(out), 0, size)
    return out

def stamp_reply(bytearray out, int32_t size, int32_t correlation_id):
    cdef uint8_t *at = <uint8_t *>PyByteArray_AS_STRING(out)
    if PyByteArray_GET_SIZE(out) < 8:
        refuse_size(8, PyByteArray_GET_SIZE(out))
    put_i(at, size)
    put_i(at + 4, correlation_id)

def request_header(object buffer):
    cdef Py_buffer held
    cdef const uint8_t *at
    cdef int16_t size
    PyObject_GetBuffer(buffer, &held, PyBUF_SIMPLE)
    try:
        if held.len < 10:
            refuse_size(10, held.len)
        at = <const uint8_t *>held.buf
        size = get_h(at + 8)
        if size <= 0:
            return get_h(at), get_h(at + 2), get_i(at + 4), "", 10
        if size > $CLIENT_ID_MAX:
            raise WireError(f"client id of {size} bytes")
        try:
            client_id = text(at + 10, size, held.len - 10)
        except UnicodeDecodeError:
            raise WireError("client id is not UTF-8") from None
        return get_h(at), get_h(at + 2), get_i(at + 4), client_id, 10 + size
    finally:
        PyBuffer_Release(&held)
