"""All dialogues: the public async functions of the modules in `dialogues/`, and their records."""

import inspect
from importlib import import_module
from pathlib import Path
from typing import Final

from tests.golden.talk import Dialogue

HERE: Final = Path(__file__).parent
RECORDED: Final = HERE / "recorded"


def dialogues() -> dict[str, Dialogue]:
    found: dict[str, Dialogue] = {}
    for path in sorted((HERE / "dialogues").glob("*.py")):
        module = import_module(f"tests.golden.dialogues.{path.stem}")
        for name, member in vars(module).items():
            is_own = inspect.iscoroutinefunction(member) and member.__module__ == module.__name__
            if is_own and not name.startswith("_"):
                assert name not in found, f"two dialogues are called {name}"
                found[name] = member
    return found


def record_of(name: str) -> Path:
    return RECORDED / f"{name}.txt"
