"""Tests run against both decoders; where there was no compiler, the compiled one is skipped."""

import importlib
from types import ModuleType

import pytest

from runnel.native import backend

NAMES = ("Columns", "OffsetMap", "find", "rebased", "scan", "unwritten")


def load(name: str) -> ModuleType:
    try:
        return importlib.import_module(f"runnel.native.{name}")
    except ImportError:
        pytest.skip(f"{name} was not built: no C compiler")


@pytest.fixture(params=["_records", "_records_py"])
def decoder(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    module = load(request.param)
    for name in NAMES:
        monkeypatch.setattr(backend, name, getattr(module, name))
    return module
