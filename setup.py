"""Compiles what is hot, where there is a C compiler; everything works without one, only slower.

Two things are compiled: the record decoder, which is Cython and has a Python twin, and the modules
of the produce and fetch walks, which are plain typed Python and go through mypyc. An editable
install (`make setup`) leaves the latter as source, so that an edit is never shadowed by an older
binary; a wheel, `make run` and `make bench` have them compiled (docs/adr/0010).
"""

import sys
from pathlib import Path

from setuptools import Extension, setup

DECODER = Path("src/runnel/native/_records.pyx")
HOT_MODULES = (
    "broker/buffers",
    "broker/client_batch",
    "broker/connection",
    "broker/context",
    "broker/dispatch",
    "broker/fetch_sessions",
    "broker/flusher",
    "broker/handlers/fetch",
    "broker/handlers/produce",
    "broker/partition",
    "broker/partitions",
    "broker/system",
    "broker/transport",
    "broker/waiting",
    "metrics",
    "storage/batches",
    "storage/epochs",
    "storage/files",
    "storage/flush",
    "storage/index",
    "storage/log",
    "storage/producers",
    "storage/segment",
    "storage/transactions",
    "types",
    "wire/batch",
)


def extensions() -> list[Extension]:
    found = decoder()
    if "editable_wheel" not in sys.argv:
        found += hot_modules()
    for extension in found:
        extension.optional = True  # without a C compiler Python serves, and the log says so
    return found


def decoder() -> list[Extension]:
    try:
        from Cython.Build import cythonize
    except ImportError:
        return []
    extension = Extension("runnel.native._records", [str(DECODER)], extra_compile_args=["-O3"])
    built: list[Extension] = cythonize([extension])  # type: ignore[no-untyped-call]  # Cython's
    return built


def hot_modules() -> list[Extension]:
    try:
        from mypyc.build import mypycify
    except ImportError:
        return []
    paths = [f"src/runnel/{name}.py" for name in HOT_MODULES]
    try:
        return mypycify(
            ["--follow-imports=silent", "--no-warn-unused-ignores", *paths],
            opt_level="3",
            debug_level="0",
            group_name="runnel",
        )
    except SystemExit:  # how mypyc says that it cannot; it has printed why
        print("setup.py: mypyc failed, the hot modules stay interpreted")  # noqa: T201
        return []


setup(ext_modules=extensions())
