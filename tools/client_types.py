"""The client's messages and deliveries for C: the same Python, with what only Cython can be told.

All that is read or sent passes through `client/message.py` or `client/delivery.py` one by one.
Compiled, each is a C struct that the garbage collector does not look at: what it holds does not
lead back to it. Without that, a batch of 500 sets the collector off each time it is wrapped, and
that costs more than the wrapping.
"""

from pathlib import Path

CLIENT = Path("src/runnel/client")
MESSAGE = (
    (
        "\nclass Message:\n",
        "\n@cython.no_gc\n@cython.freelist(512)\ncdef class Message:\n"
        "    cdef object _raw, _deserializers, _key, _value\n",
    ),
    (
        "\nclass ReceivedMessage(Message):\n",
        "\n@cython.no_gc\ncdef class ReceivedMessage(Message):\n",
    ),
    (
        "    messages: list[Message] = []\n",
        "    cdef ReceivedMessage message\n    cdef list messages = []\n",
    ),
    (
        "    positions: dict[Partition, int] = {}\n",
        "    cdef Message message\n    cdef dict positions = {}\n",
    ),
)

DELIVERY = (
    (
        "\nclass Delivery:\n",
        "\n@cython.no_gc\n@cython.freelist(512)\ncdef class Delivery:\n"
        "    cdef object _sender, _offset, _error\n"
        "    cdef long long _partition, _failure\n"
        "    cdef readonly object topic, _listeners\n",
    ),
)
ADDED = {"message": MESSAGE, "delivery": DELIVERY}


def source(name: str) -> str:
    """Raises ValueError if the file no longer has what is to be told to Cython."""
    path = CLIENT / f"{name}.py"
    text = path.read_text()
    for python, cython in ADDED[name]:
        if text.count(python) != 1:
            raise ValueError(f"{path} has {text.count(python)} times {python!r}, not once")
        text = text.replace(python, cython)
    return f"cimport cython\n{text}"
