"""`runnel serve`: run one broker until it is told to stop.

Prints one line when clients can connect. SIGTERM and SIGINT stop it in order: no new connections,
requests under way are answered, everything is flushed, and the clean-shutdown marker is written.
A second signal ends it at once, as a crash would; that is safe too.
"""

import argparse
import asyncio
import errno
import json
import logging
import os
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NoReturn

from runnel import __version__
from runnel.broker.running import StoppedError, run_broker
from runnel.broker.server import Broker
from runnel.broker.system import process_age_ms, run, tune_collector
from runnel.cli import notify
from runnel.cli.limits import ensure_standard_streams, within_file_limit
from runnel.cli.logs import configure, identify, presentable
from runnel.cli.preflight import ensure_possible
from runnel.config.definition import ConfigError
from runnel.config.runnel_names import LOG_LEVELS
from runnel.config.settings import Settings, load
from runnel.errors import RunnelError
from runnel.storage.lock import FolderInUseError, FolderLock

_log = logging.getLogger("runnel.serve")
BAD_INPUT = 2
PROGRESS_EVERY_S = 1.0


class Arguments(argparse.ArgumentParser):
    """A mistake is one line that says what to do next, not a page of usage."""

    def error(self, message: str) -> NoReturn:
        sys.stderr.write(f"runnel serve: {presentable(message)}; see runnel serve --help\n")
        raise SystemExit(BAD_INPUT)


def arguments() -> argparse.ArgumentParser:
    parser = Arguments(
        prog="runnel serve",
        allow_abbrev=False,
        description="Run one broker. Every Kafka client can connect to it.",
        epilog="Any broker setting can be given with --set name=value, in the environment as"
        " RUNNEL_NAME_WITH_UNDERSCORES, or in the file; flags win over the environment, that over"
        " the file.",
    )
    add = parser.add_argument
    add("--host", help="address to listen on (default 127.0.0.1)")
    add("-p", "--port", help="port to listen on, 0 picks a free one (default 9092)")
    add("--address", metavar="HOST:PORT", help="both of them")
    add("--advertised-host", metavar="HOST[:PORT]", help="address that clients are told to use")
    add("--http", metavar="HOST:PORT", help="metrics and health; off: none (default port 9644)")
    add("--data-dir", metavar="FOLDER", help="where the data is kept (default runnel-data)")
    add("-b", "--broker-id", metavar="N", help="number of this broker (default 0)")
    add("-c", "--config", type=Path, metavar="FILE", help="a .yaml, .json or .properties file")
    add("--retention-seconds", metavar="N", help="how long records are kept (default 7 days)")
    add("-l", "--log-level", metavar="LEVEL", help=f"{', '.join(LOG_LEVELS)} (default info)")
    add("--log-format", metavar="FORMAT", help="text or json (default text)")
    add("--log-file", metavar="FILE", help="write the log to this file too, with rotation")
    add("--set", action="append", default=[], metavar="NAME=VALUE", help="any broker setting")
    add("--ready-file", type=Path, metavar="FILE", help="gets JSON with the address when ready")
    return parser


FLAGS = (
    *("--host", "--port", "--address", "--advertised-host", "--http", "--data-dir"),
    *("--broker-id", "--retention-seconds", "--log-level", "--log-format", "--log-file"),
)


def settings_from(
    options: argparse.Namespace, environ: Mapping[str, str]
) -> tuple[Settings, list[str]]:
    """Settings and what to warn of. Raises ConfigError."""
    flags: dict[str, str] = {}
    for pair in options.set:
        name, equals, value = pair.partition("=")
        if not equals:
            raise ConfigError(f"--set wants NAME=VALUE, not {pair!r}")
        flags[name.strip()] = value.strip()
    for flag in FLAGS:
        value = getattr(options, flag.removeprefix("--").replace("-", "_"))
        if value is not None and not value.strip():  # as of a variable that is not set
            raise ConfigError(f"{flag} is empty: give it a value, or leave it out")
        if value is not None:
            flags[flag] = value
    return load(flags, environ, options.config)


# Told in one line, without a traceback.
EXPECTED = (ConfigError, FolderInUseError, RunnelError, OSError, StoppedError)


def main(argv: Sequence[str]) -> int:
    ensure_standard_streams()
    options = arguments().parse_args(argv)
    locks: list[FolderLock] = []
    phase = _Phase()
    try:
        settings, warnings = settings_from(options, os.environ)
        _ensure_writable(options.ready_file)
        folders = ensure_possible(settings, warnings)
        configure(settings.own_log, settings.given)
        identify(broker_id=settings.node_id)
        for warning in warnings:
            _log.warning("%s", warning)
        settings = within_file_limit(settings)
        phase.folders = settings.log_dirs
        for folder in folders:
            _make_folder(folder)
            locks.append(FolderLock(folder))
        run(_serve(settings, options.ready_file, phase))
        _log.info("stopped")
    except EXPECTED as error:
        return _failed(error, phase)
    except ExceptionGroup as group:  # one of the broker's tasks ended it
        if group.split(EXPECTED)[1] is not None:
            raise
        return _failed(group.exceptions[0], phase)
    finally:
        if locks and options.ready_file is not None:  # without a lock it would be another's file
            options.ready_file.unlink(missing_ok=True)
        for lock in locks:
            lock.release()
    return 0


class _Phase:
    """How far the start has come. What fails before clients may come, the operator can mend."""

    __slots__ = ("folders", "is_ready")

    def __init__(self) -> None:
        self.folders: tuple[str, ...] = ()
        self.is_ready = False


def _make_folder(folder: str) -> None:
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(
            f"{folder} cannot be made: {error.strerror}; choose another folder with --data-dir"
        ) from None


def _ensure_writable(ready_file: Path | None) -> None:
    """Before the data is opened, not after clients were told to come."""
    if ready_file is not None and not os.access(ready_file.resolve().parent, os.W_OK):
        raise ConfigError(f"--ready-file: no file can be written in {ready_file.resolve().parent}")


def _failed(error: Exception, phase: _Phase) -> int:
    text = str(error)
    if isinstance(error, OSError) and error.filename is None:  # of a write: it knows no name
        text = f"cannot write to {', '.join(phase.folders)}: {error.strerror or text}"
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            text += "; free some space, or choose another folder with --data-dir"
    sys.stderr.write(f"runnel: {presentable(text)}\n")
    return 1 if phase.is_ready or isinstance(error, StoppedError) else BAD_INPUT


async def _serve(settings: Settings, ready_file: Path | None, phase: _Phase) -> None:
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, _on_signal, stop, number)

    def on_ready(broker: Broker, addresses: list[str], http: str | None) -> None:
        phase.is_ready = True
        identify(cluster_id=broker.cluster_id)
        tune_collector()
        _tell_ready(addresses, http, broker.settings, ready_file)
        notify.ready(addresses)

    await run_broker(settings, stop, on_ready, progress=_Progress(stop))


def _on_signal(stop: asyncio.Event, number: int) -> None:
    if stop.is_set():
        os._exit(128 + number)
    notify.stopping()
    stop.set()


def _tell_ready(
    addresses: list[str], http: str | None, settings: Settings, ready_file: Path | None
) -> None:
    """One line for a person; one file, put in place whole, for a program."""
    _log.info(
        "runnel %s is ready on %s after %d ms, broker %d, data in %s",
        __version__,
        ", ".join(addresses),
        process_age_ms(),
        settings.node_id,
        ", ".join(settings.log_dirs),
    )
    if ready_file is not None:
        draft = ready_file.with_name(ready_file.name + ".tmp")
        ready = {"kafka": addresses, "http": http, "pid": os.getpid()}
        draft.write_text(json.dumps(ready) + "\n")
        draft.replace(ready_file)


class _Progress:
    """Says at most once a second how far the opening of the data folder is."""

    def __init__(self, stop: asyncio.Event) -> None:
        self._stop = stop
        self._told = time.monotonic()

    def __call__(self, done: int, total: int, name: str) -> None:
        if self._stop.is_set():
            raise StoppedError
        now = time.monotonic()
        if now - self._told >= PROGRESS_EVERY_S:
            self._told = now
            _log.info("opening logs: %d of %d, now %s", done, total, name)
            notify.opening(done, total)
