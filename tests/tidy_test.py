"""Properties of the code itself that no type checker sees. Bans fail; lengths are only told."""

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

import runnel
from runnel.broker.api_table import api_table
from runnel.broker.security import Resource
from runnel.errors import ErrorCode
from runnel.wire.apis import ApiKey

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "runnel"
CORE = ("wire", "storage", "native", "inspect", "cluster/image.py", "cluster/decide.py")
LONG_FILE_LINES = 500
LONG_FUNCTION_LINES = 70
BANNED_CALLS = {
    "time.time",
    "time.time_ns",
    "time.monotonic",
    "datetime.now",
    "random.random",
    "random.randrange",
    "random.choice",
    "os.urandom",
}
FILE_CALLS = {"open", "os.open", "os.pwrite", "os.write", "os.fsync", "os.fdatasync", "os.rename"}
# The last: of the system's, and not to keep anything in.
MAY_TOUCH_FILES = {"storage/files.py", "storage/lock.py", "native/calls.py", "broker/vigil.py"}


def sources(*folders: str) -> Iterator[Path]:
    for folder in folders or ("",):
        path = SOURCE / folder
        yield from [path] if path.is_file() else sorted(path.rglob("*.py"))


def dotted_calls(path: Path) -> Iterator[tuple[str, int]]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call):
            yield ast.unparse(node.func), node.lineno


def test_assertions_are_on() -> None:
    assert __debug__, "never run with -O: assertions are part of the safety"


def test_the_core_reads_no_clock_and_draws_no_numbers() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line} calls {name}"
        for path in sources(*CORE)
        for name, line in dotted_calls(path)
        if name in BANNED_CALLS
    ]
    assert not found, found


def test_only_files_py_touches_files() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line} calls {name}"
        for path in sources("storage", "wire", "native", "inspect", "broker")
        if str(path.relative_to(SOURCE)) not in MAY_TOUCH_FILES
        for name, line in dotted_calls(path)
        if name in FILE_CALLS
    ]
    assert not found, found


def test_no_class_inherits_from_a_compiled_one() -> None:
    """mypyc's classes have no children that are interpreted: importing one fails, compiled."""
    compiled = _hot_modules()
    found: list[str] = []
    for path in sources():
        module = path.relative_to(SOURCE).with_suffix("").as_posix()
        if module in compiled:
            continue
        tree = ast.parse(path.read_text())
        foreign = {
            alias.asname or alias.name
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom) and _path_of(node.module) in compiled
            for alias in node.names
        }
        modules = {
            alias.asname or alias.name
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom)
            for alias in node.names
            if _path_of(f"{node.module}.{alias.name}") in compiled
        }
        found += [
            f"{path.relative_to(ROOT)}:{node.lineno} {node.name}({ast.unparse(base)})"
            for node in ast.walk(tree)
            if isinstance(node, ast.ClassDef)
            for base in node.bases
            if ast.unparse(base) in foreign or ast.unparse(base).partition(".")[0] in modules
        ]
    assert not found, found


def _hot_modules() -> set[str]:
    for node in ast.parse((ROOT / "setup.py").read_text()).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "HOT_MODULES":
            return set(ast.literal_eval(node.value))
    raise AssertionError("setup.py has no HOT_MODULES")


def _path_of(module: str | None) -> str:
    return (module or "").removeprefix("runnel.").replace(".", "/")


def test_nothing_leaves_the_repository() -> None:
    """No path of a machine and no registry host may be committed."""
    pattern = re.compile(
        r"\.\./shared|/work/(main|shared)|https?://(pypi|files\.pythonhosted|repo1?\.maven)"
    )
    found = [
        str(path.relative_to(ROOT))
        for folder in ("src", "tests", "tools", "bench", "docs", "examples", ".ci")
        for path in (ROOT / folder).rglob("*")
        if path.is_file()
        and path.suffix in {".py", ".md", ".toml", ".sh", ".xml", ".java", ".go", ".yaml", ".lock"}
        and path != Path(__file__)
        and not {"target", "node_modules", ".venv", "build"} & set(path.parts)
        and pattern.search(path.read_text(errors="replace"))
    ]
    assert not found, found


def test_every_api_names_its_right() -> None:
    for row in api_table():
        free = row.key == ApiKey.API_VERSIONS
        assert (row.right is None) == free, f"{row.key.name} has no row in the table of rights"
        assert row.right is None or row.right.resource != Resource.NONE


def test_error_codes_are_kafkas() -> None:
    table = (ROOT / "tools/kafka-4.3/errors.md").read_text()
    rows = re.findall(r"^\| (-?\d+) \| (\w+) \|", table, re.MULTILINE)
    assert {name: int(code) for code, name in rows} == {e.name: e.value for e in ErrorCode}


def test_version_and_changelog_agree() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert project["project"]["version"] == runnel.__version__
    assert f"## {runnel.__version__}" in (ROOT / "CHANGELOG.md").read_text()


def test_every_module_says_what_it_is_for() -> None:
    found = [
        str(path.relative_to(ROOT))
        for path in sources()
        if path.stat().st_size and ast.get_docstring(ast.parse(path.read_text())) is None
    ]
    assert not found, found


def test_lengths_worth_a_look(capsys: pytest.CaptureFixture[str]) -> None:
    """Not a ban: it prints what has grown."""
    long: list[str] = []
    for path in sources():
        if "messages" in path.parts:
            continue
        text = path.read_text()
        if (lines := text.count("\n")) > LONG_FILE_LINES:
            long.append(f"{path.relative_to(ROOT)}: {lines} lines")
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                length = (node.end_lineno or 0) - node.lineno
                if length > LONG_FUNCTION_LINES:
                    long.append(f"{path.relative_to(ROOT)}: {node.name} has {length} lines")
    with capsys.disabled():
        for line in long:
            print(f"\nworth a look: {line}", end="")
