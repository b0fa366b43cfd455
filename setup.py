"""Compiles what is hot, where there is a C compiler; everything works without one, only slower.

Four things are compiled: the record decoder, the encoder of columns, what coordinators write, runs
of batches, the clocks and a few system calls, which are Cython and have Python twins; the codecs of
produce, fetch, commits and heartbeats, Cython written by `tools/hot_codecs.py`; the modules that
these go through, plain typed Python that goes through mypyc; and the client's messages and
deliveries, the same Python files through Cython, with types that `tools/client_types.py` adds.
An editable install (`make setup`) leaves all but the first as source, so that an edit is never
shadowed by an older binary; a wheel, `make run` and `make bench` have them compiled
(docs/adr/0010, docs/adr/0039).
"""

import os
import sys
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

DECODER = Path("src/runnel/native/_records.pyx")
ENCODER = Path("src/runnel/native/_payloads.pyx")
JOURNAL = Path("src/runnel/native/_journal.pyx")
BATCH_RUNS = Path("src/runnel/native/_batch_runs.pyx")
CALLS = Path("src/runnel/native/_calls.pyx")
CLOCK = Path("src/runnel/broker/_clock.pyx")
HOT_GROUP = "runnel__mypyc"
HOT_MODULES = (
    "broker/buffers",
    "broker/client_batch",
    "broker/connection",
    "broker/context",
    "broker/coordinators",
    "broker/courtesy",
    "broker/dispatch",
    "broker/error_codes",
    "broker/fetch_sessions",
    "broker/flusher",
    "broker/gathering",
    "broker/group_topics",
    "broker/handlers/classic_groups",
    "broker/handlers/consumer_groups",
    "broker/handlers/fetch",
    "broker/handlers/fetch_plan",
    "broker/handlers/group_partitions",
    "broker/handlers/offset_commit",
    "broker/handlers/produce",
    "broker/journal",
    "broker/partition",
    "broker/partition_gauges",
    "broker/partitions",
    "broker/polling",
    "broker/quotas",
    "broker/settling",
    "broker/shared_rows",
    "broker/system",
    "broker/throttling",
    "broker/transport",
    "broker/vigil",
    "broker/waiting",
    "broker/watching",
    "coordinator/gathering",
    "coordinator/groups/caller",
    "coordinator/groups/classic",
    "coordinator/groups/classic_group",
    "coordinator/groups/classic_member",
    "coordinator/groups/committed",
    "coordinator/groups/consumer_checks",
    "coordinator/groups/consumer_commits",
    "coordinator/groups/consumer_epochs",
    "coordinator/groups/consumer_group",
    "coordinator/groups/consumer_protocol",
    "coordinator/groups/consumer_regex",
    "coordinator/groups/consumer_requests",
    "coordinator/groups/consumer_sessions",
    "coordinator/groups/consumer_staying",
    "coordinator/groups/machine",
    "coordinator/groups/offset_records",
    "coordinator/groups/offsets",
    "coordinator/runtime",
    "coordinator/timers",
    "metrics",
    "storage/batches",
    "storage/epochs",
    "storage/files",
    "storage/flush",
    "storage/index",
    "storage/log",
    "storage/log_cleaning",
    "storage/log_cutting",
    "storage/log_flushing",
    "storage/log_state",
    "storage/log_writing",
    "storage/producers",
    "storage/segment",
    "storage/transactions",
    "types",
    "wire/batch",
)


def extensions() -> list[Extension]:
    found = cython("runnel.native._records", DECODER, "-O3")
    found += cython("runnel.native._payloads", ENCODER, "-O3")
    found += cython("runnel.native._journal", JOURNAL, "-O2")
    found += cython("runnel.native._batch_runs", BATCH_RUNS, "-O2")
    found += cython("runnel.native._calls", CALLS, "-O2")
    found += cython("runnel.broker._clock", CLOCK, "-O2")
    if "editable_wheel" not in sys.argv:
        found += hot_codecs() + client_types() + hot_modules()
    for extension in found:
        extension.optional = True  # without a C compiler Python serves, and the log says so
    return found


def cython(name: str, source: Path, optimisation: str) -> list[Extension]:
    try:
        from Cython.Build import cythonize
    except ImportError:
        return []
    extension = Extension(name, [str(source)], extra_compile_args=[optimisation])
    built: list[Extension] = cythonize(  # type: ignore[no-untyped-call]  # Cython's
        [extension], compiler_directives={"annotation_typing": False}
    )
    return built


def hot_codecs() -> list[Extension]:
    """The codecs of what comes most, from the same declarations as all the others."""
    sys.path[:0] = ["src", "."]
    from tools.hot_codecs import source

    # More than -O1 takes twice as long to compile and saves one instruction in sixty.
    return cython("runnel.wire._hot", written("codecs/_hot.pyx", source()), "-O1")


def client_types() -> list[Extension]:
    from tools.client_types import ADDED, source

    return [
        extension
        for name in ADDED
        for extension in cython(
            f"runnel.client.{name}", written(f"client/{name}.pyx", source(name)), "-O2"
        )
    ]


def written(name: str, source: str) -> Path:
    path = Path("build") / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(source)
    return path


def hot_modules() -> list[Extension]:
    try:
        from mypyc.build import mypycify
    except ImportError:
        return []
    paths = [f"src/runnel/{name}.py" for name in HOT_MODULES]
    try:
        return mypycify(
            ["--follow-imports=silent", "--no-warn-unused-ignores", *paths],
            opt_level="1",
            debug_level="0",
            group_name="runnel",
        )
    except SystemExit:  # how mypyc says that it cannot; it has printed why
        print("setup.py: mypyc failed, the hot modules stay interpreted")  # noqa: T201
        return []


class Build(build_ext):
    """What cannot be compiled leaves nothing behind: no older binary, and none that needs it."""

    def build_extension(self, ext: Extension) -> None:
        path = Path(self.get_ext_fullpath(ext.name))
        path.unlink(missing_ok=True)
        super().build_extension(ext)

    def run(self) -> None:
        super().run()
        if HOT_GROUP in self.ext_map and not Path(self.get_ext_fullpath(HOT_GROUP)).exists():
            print("setup.py: the hot modules were not compiled, they stay interpreted")  # noqa: T201
            for name in HOT_MODULES:
                module = f"runnel.{name.replace('/', '.')}"
                Path(self.get_ext_fullpath(module)).unlink(missing_ok=True)


setup(
    ext_modules=extensions(),
    options={"build_ext": {"parallel": os.cpu_count()}},
    cmdclass={"build_ext": Build},
)
