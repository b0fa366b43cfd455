# cython: language_level=3, binding=False
"""System calls of the hot path, as their twins in `calls.py` do them.

Python's own take a hundred times as many instructions as they need to reach the kernel, and each
lets go of the interpreter: a worker that takes it then keeps the loop waiting. What is small is
over before another thread would have begun, so only what is large lets go. They are for the loop
alone: a file may keep who writes waiting, and in a worker that shall be nobody else's matter.
"""

from cpython.buffer cimport (
    Py_buffer, PyBUF_SIMPLE, PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer,
)
from cpython.exc cimport PyErr_CheckSignals, PyErr_SetFromErrno
from libc.errno cimport EAGAIN, EINTR, errno

cdef extern from *:
    """
    #include <errno.h>
    #include <poll.h>
    #include <sys/socket.h>
    #include <unistd.h>
    #ifndef MSG_NOSIGNAL
    #define MSG_NOSIGNAL 0  /* Python has the signal ignored */
    #endif
    """
    struct pollfd:
        int fd
        short events
        short revents
    short POLLIN
    int EWOULDBLOCK, MSG_NOSIGNAL
    int poll(pollfd *, unsigned long, int) nogil
    ssize_t recv(int, void *, size_t, int) nogil
    ssize_t send(int, const void *, size_t, int) nogil
    ssize_t pwrite(int, const void *, size_t, long) nogil

cdef enum:
    LARGE_BYTES = 128 * 1024


cdef ssize_t failed() except -2:
    """-1 if it would block, -2 with what was raised, 0 if it was interrupted."""
    if errno == EAGAIN or errno == EWOULDBLOCK:
        return -1
    if errno != EINTR:
        PyErr_SetFromErrno(OSError)
        return -2
    PyErr_CheckSignals()
    return 0


def receive(int fd, into):
    cdef Py_buffer held
    cdef ssize_t count
    PyObject_GetBuffer(into, &held, PyBUF_WRITABLE)
    try:
        while True:
            if held.len > LARGE_BYTES:
                with nogil:
                    count = recv(fd, held.buf, held.len, 0)
            else:
                count = recv(fd, held.buf, held.len, 0)
            if count >= 0 or failed() == -1:
                return count
    finally:
        PyBuffer_Release(&held)


def send_at_once(int fd, data):
    cdef Py_buffer held
    cdef ssize_t count
    PyObject_GetBuffer(data, &held, PyBUF_SIMPLE)
    try:
        while True:
            if held.len > LARGE_BYTES:
                with nogil:
                    count = send(fd, held.buf, held.len, MSG_NOSIGNAL)
            else:
                count = send(fd, held.buf, held.len, MSG_NOSIGNAL)
            if count >= 0 or failed() == -1:
                return count
    finally:
        PyBuffer_Release(&held)


def write_on_loop(int fd, data, long position):
    cdef Py_buffer held
    cdef ssize_t count
    PyObject_GetBuffer(data, &held, PyBUF_SIMPLE)
    try:
        while True:
            if held.len > LARGE_BYTES:
                with nogil:
                    count = pwrite(fd, held.buf, held.len, position)
            else:
                count = pwrite(fd, held.buf, held.len, position)
            if count >= 0:
                return count
            if failed() == -1:
                PyErr_SetFromErrno(OSError)
                return None
    finally:
        PyBuffer_Release(&held)


def look(int fd, int other_fd, int times):
    cdef pollfd[2] looked_at
    cdef int turn, found = 0
    looked_at[0].fd, looked_at[1].fd = fd, other_fd
    looked_at[0].events = looked_at[1].events = POLLIN
    looked_at[0].revents = looked_at[1].revents = 0
    with nogil:
        for turn in range(times):
            found = poll(looked_at, 2, 0)
            if found:
                break
    if found <= 0:
        return 0
    return (looked_at[0].revents != 0) | (looked_at[1].revents != 0) << 1
