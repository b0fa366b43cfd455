# cython: language_level=3, binding=False
"""Milliseconds of the system's clocks. Python's own take a tuple and a division of large integers."""

from libc.stdint cimport int64_t


cdef extern from *:
    """
    #include <stdint.h>
    #include <time.h>
    #ifndef CLOCK_BOOTTIME
    #define CLOCK_BOOTTIME CLOCK_MONOTONIC
    #endif
    static int64_t clock_ms(clockid_t which) {
        struct timespec now;
        clock_gettime(which, &now);
        return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
    }
    """
    enum: CLOCK_BOOTTIME
    enum: CLOCK_REALTIME
    int64_t clock_ms(int which)


def boot_ms():
    return clock_ms(CLOCK_BOOTTIME)


def wall_ms():
    return clock_ms(CLOCK_REALTIME)
