"""The client's messages and deliveries for C: the same Python, with what only Cython can be told.

All that is read or sent passes through `client/message.py` or `client/delivery.py` one by one.
Compiled, each is a C struct that the garbage collector does not look at: what it holds does not
lead back to it. Without that, a batch of 500 sets the collector off each time it is wrapped, and
that costs more than the wrapping.
"""

from pathlib import Path

CLIENT = Path("src/runnel/client")
# Each message that is read is asked some things of confluent-kafka: by its C functions themselves,
# as a call by way of a Python object costs twice as much; what is no plain message, by way of that.
ASKING = """
cdef extern from "Python.h":
    ctypedef object (*PyCFunction)(object, void*)
    ctypedef struct PyMethodDef:
        PyCFunction ml_meth
        int ml_flags
    ctypedef struct PyMethodDescrObject:
        PyMethodDef* d_method
    const int METH_NOARGS

cdef type _RAW = confluent_kafka.Message

cdef PyCFunction _function(object method):
    if type(method) is not type(str.lower):
        return NULL
    definition = (<PyMethodDescrObject*>method).d_method
    return definition.ml_meth if definition.ml_flags == METH_NOARGS else NULL
"""


def asked(name: str) -> tuple[str, str]:
    """`_name_of(raw)` as a call in C."""
    python = f"_{name}_of: Any = confluent_kafka.Message.{name}\n"
    return (
        python,
        f"_any{python}"
        f"cdef PyCFunction _{name} = _function(_any_{name}_of)\n"
        f"cdef inline object _{name}_of(object raw):\n"
        f"    if type(raw) is _RAW and _{name} is not NULL:\n"
        f"        return _{name}(raw, NULL)\n"
        f"    return _any_{name}_of(raw)\n",
    )


MESSAGE = (
    ("_UNREAD: Final = object()", f"{ASKING}\n_UNREAD: Final = object()"),
    *map(asked, ("error", "topic", "partition", "offset", "key", "value")),
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
