# Numbers of records: zigzag, seven bits a byte, the last one without its highest bit.
from libc.stdint cimport int64_t, uint8_t, uint64_t


cdef inline int varlong_size(int64_t value) noexcept nogil:
    cdef uint64_t zigzag = (<uint64_t>value << 1) ^ <uint64_t>(value >> 63)
    cdef int size = 1
    while zigzag > 0x7F:
        zigzag >>= 7
        size += 1
    return size


cdef inline uint8_t* put_varlong(uint8_t* out, int64_t value) noexcept nogil:
    cdef uint64_t zigzag = (<uint64_t>value << 1) ^ <uint64_t>(value >> 63)
    while zigzag > 0x7F:
        out[0] = <uint8_t>(zigzag & 0x7F | 0x80)
        out += 1
        zigzag >>= 7
    out[0] = <uint8_t>zigzag
    return out + 1
