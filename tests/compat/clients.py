"""Every program that is run: how it is built, and what a machine needs for it.

Each is built once, into `build/compat`, from the project's own files: `pom.xml`, `go.mod`,
`package.json`, `Cargo.toml`, `requirements.txt`.
"""

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import NamedTuple

from tests.support.kafka_tools import CACHE, ROOT, KafkaToolError, class_path

COMPAT = ROOT / "tests/compat"
SETUP_TIMEOUT_S = 1_800.0  # librdkafka is compiled, twice, on whatever machine this is
QUIET = "-Dorg.slf4j.simpleLogger.defaultLogLevel=error"
OLD_KAFKA = "3.9.1"


class Program(NamedTuple):
    name: str
    command: Callable[[], list[str]]  # does its set-up first; the broker's address is appended
    needs: tuple[str, ...]  # the programs without which it cannot run
    patience_s: float = 300.0  # of a suite

    def missing(self) -> str:
        """What this machine lacks for it, or nothing."""
        return ", ".join(name for name in self.needs if shutil.which(name) is None)


def _java(source: str, kafka_version: str = "") -> list[str]:
    properties = {"kafka.version": kafka_version} if kafka_version else {}
    jars = class_path(COMPAT / "java/pom.xml", properties)
    return ["java", "-Xmx512m", QUIET, "-cp", jars, str(COMPAT / "java" / source)]


def _streams() -> list[str]:
    jars = class_path(COMPAT / "streams/pom.xml")
    return ["java", "-Xmx512m", QUIET, "-cp", jars, str(COMPAT / "streams/WordCount.java")]


def _scala() -> list[str]:
    """Compiled by the compiler's own class: a machine needs no Scala, only Java."""
    programs = [COMPAT / "scala/Driver.scala", COMPAT / "scala/Groups.scala"]
    sources = [*programs, COMPAT / "scala/pom.xml"]
    home = CACHE / "scala"
    jars = class_path(sources[-1])
    if _is_new(home, sources):
        home.mkdir(parents=True, exist_ok=True)
        compiler = ["java", "-Xss8m", "-cp", jars, "scala.tools.nsc.Main", "-usejavacp"]
        _set_up([*compiler, "-d", str(home), *map(str, programs)], ROOT)
        _set_built(home, sources)
    return ["java", "-Xmx512m", QUIET, "-cp", f"{home}:{jars}", "Driver"]


def _go(package: str) -> list[str]:
    program = CACHE / f"franz-go-{package.strip('./') or 'suite'}"
    _set_up(["go", "build", "-o", str(program), package], COMPAT / "go")
    return [str(program)]


def _node(script: str) -> list[str]:
    """With the Node that comes by the package of that name: the machine's may be too old."""
    home = _npm(COMPAT / "node", {})
    return [str(home / "node_modules/.bin/node"), str(home / script)]


def _node_librdkafka(script: str) -> list[str]:
    """Compiled here, with the machine's Node and libraries: nothing is fetched but the package."""
    home = _npm(COMPAT / "node-librdkafka", {"CKJS_LINKING": "dynamic"})
    return ["node", str(home / script)]


def _npm(folder: Path, environment: Mapping[str, str]) -> Path:
    """Modules are found from where a script lies, so the scripts are copied beside them."""
    home = CACHE / folder.name
    wanted = [folder / "package.json", folder / "package-lock.json"]
    scripts = [*folder.glob("*.mjs"), COMPAT / "node/serve.mjs"]
    home.mkdir(parents=True, exist_ok=True)
    for source in [*wanted, *scripts]:
        shutil.copy(source, home)
    if _is_new(home, wanted):
        _set_up(["npm", "ci", "--no-audit", "--no-fund"], home, environment)
        _set_built(home, wanted)
    return home


def _rust(program: str) -> list[str]:
    """Cargo builds a copy, so that what it writes beside its manifest stays out of the tree."""
    home = CACHE / "rust"
    shutil.rmtree(home / "src", ignore_errors=True)  # what was renamed since would be built twice
    shutil.copytree(COMPAT / "rust", home, dirs_exist_ok=True)
    _set_up(["cargo", "build", "-q"], home, {"CARGO_TARGET_DIR": str(home / "target")})
    return [str(home / "target/debug" / program)]


def pure_python() -> str:
    """The pure-Python clients live apart from the broker's own environment."""
    home = CACHE / "venv"
    python = home / "bin/python"
    wanted = COMPAT / "python/requirements.txt"
    if _is_new(home, [wanted]):
        _set_up([sys.executable, "-m", "venv", "--clear", str(home)], ROOT)
        _set_up([str(python), "-m", "pip", "install", "-q", "-r", str(wanted)], ROOT)
        _set_built(home, [wanted])
    return str(python)


def _own_environment(module: str) -> list[str]:
    return [pure_python(), "-m", module]


def _here(module: str) -> list[str]:
    return [sys.executable, "-m", module]


def _is_new(home: Path, sources: list[Path]) -> bool:
    """Whether what is built at `home` is not of these sources."""
    stamp = home / ".built-of"
    return not stamp.exists() or stamp.read_text() != _digest(sources)


def _set_built(home: Path, sources: list[Path]) -> None:
    (home / ".built-of").write_text(_digest(sources))


def _digest(sources: list[Path]) -> str:
    return hashlib.sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()


def _set_up(command: list[str], folder: Path, extra: Mapping[str, str] | None = None) -> None:
    done = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, **(extra or {})},
        capture_output=True,
        text=True,
        timeout=SETUP_TIMEOUT_S,
    )
    if done.returncode != 0:
        raise KafkaToolError(f"{command[0]} failed: {done.stderr.strip()[-500:]}")


def _page(language: str) -> list[str]:
    """What takes minutes to compile is made first, as for the matrix: a suite has less time."""
    if language == "node":
        _node_librdkafka("confluent.mjs")
    elif language == "rust":
        _rust("rdkafka_driver")
    return [*_here("tests.compat.languages.languages_suite"), f"{language}.md"]


# The pages of docs/languages whose programs are built and run here, and what they need.
LANGUAGE_PAGES = {
    "python": (),
    "java": ("java", "mvn"),
    "scala": ("java", "mvn"),
    "go": ("go",),
    "rust": ("cargo", "cc", "make"),
    "c": ("cc", "pkg-config", "dpkg"),
    "node": ("node", "npm", "make", "g++"),
}

# Suites in their clients' own words: each prints its checks, one a line.
SUITES = [
    Program("kafka-clients", lambda: _java("ClientSuite.java"), ("java",)),
    Program("coordinators", lambda: _java("CoordinatorSuite.java"), ("java", "mvn")),
    Program("franz-go", lambda: _go("."), ("go",)),
    Program("confluent", lambda: _here("tests.compat.librdkafka.confluent_suite"), ()),
    Program("runnel.client", lambda: _here("tests.compat.librdkafka.library_suite"), ()),
    Program("kcat", lambda: _here("tests.compat.librdkafka.kcat_suite"), ("kcat",)),
    Program("runnel-cli", lambda: _here("tests.compat.command_line.cli_suite"), ()),
    Program("kafka-python", lambda: _own_environment("tests.compat.python.kafka_python_suite"), ()),
    Program("aiokafka", lambda: _own_environment("tests.compat.python.aiokafka_suite"), ()),
    Program("streams", _streams, ("java", "mvn")),
    Program("connect", lambda: _here("tests.compat.connect.connect_suite"), ("java", "mvn")),
    Program("docs", lambda: _here("tests.compat.docs.docs_suite"), ("java", "go")),
]
# These start brokers of their own, and are told of which kind.
BROKER_SUITES = [
    Program("DumpLogSegments", lambda: _here("tests.compat.dump.dump_suite"), ("java", "mvn")),
    Program("compaction", lambda: _here("tests.compat.compacted.compacted_suite"), ("java", "mvn")),
    Program("examples", lambda: _here("tests.compat.examples.examples_suite"), ("java", "mvn")),
    Program("journals", lambda: _here("tests.compat.dump.journals_suite"), ("java", "mvn")),
    Program("tools", lambda: _here("tests.compat.tools.tools_suite"), ("java", "mvn")),
]
BROKER_SUITES.append(
    Program(
        "from-kafka", lambda: _here("tests.compat.migration.migration_suite"), ("java", "mvn", "jq")
    )
)
BROKER_SUITES.append(
    Program("spark", lambda: _here("tests.compat.spark.spark_suite"), ("java", "mvn"), 1200.0)
)
BROKER_SUITES += [
    Program(
        "spark-source", lambda: _here("tests.compat.spark.source_suite"), ("java", "mvn"), 600.0
    ),
    Program("spark-lag", lambda: _here("tests.compat.spark.lag_suite"), ("java", "mvn"), 600.0),
    Program(
        "spark-checkpoint",
        lambda: _here("tests.compat.spark.checkpoint_suite"),
        ("java", "mvn"),
        600.0,
    ),
    Program("spark-cluster", lambda: _here("tests.compat.spark.cluster_suite"), ("bash",), 900.0),
]
BROKER_SUITES += [
    Program(f"docs-{page}", partial(_page, page), needs) for page, needs in LANGUAGE_PAGES.items()
]

# Drivers of the matrix: told what to do by lines, see `driver.py`.
DRIVERS = [
    Program("kafka-clients-4.3", lambda: _java("Driver.java"), ("java", "mvn")),
    Program("kafka-clients-3.9", lambda: _java("Driver.java", OLD_KAFKA), ("java", "mvn")),
    Program("kafka-clients-scala", _scala, ("java", "mvn")),
    Program("confluent-kafka", lambda: _here("tests.compat.librdkafka.confluent_driver"), ()),
    Program(
        "kafka-python", lambda: _own_environment("tests.compat.python.kafka_python_driver"), ()
    ),
    Program("aiokafka", lambda: _own_environment("tests.compat.python.aiokafka_driver"), ()),
    Program("franz-go", lambda: _go("./driver"), ("go",)),
    Program("kafkajs", lambda: _node("kafkajs.mjs"), ("node", "npm")),
    Program("@platformatic/kafka", lambda: _node("platformatic.mjs"), ("node", "npm")),
    Program(
        "@confluentinc/kafka-javascript",
        lambda: _node_librdkafka("confluent.mjs"),
        ("node", "npm", "make", "g++"),
    ),
    Program("rskafka", lambda: _rust("rskafka_driver"), ("cargo", "cc")),
    Program("rdkafka", lambda: _rust("rdkafka_driver"), ("cargo", "cc", "make")),
    Program("kcat", lambda: _here("tests.compat.librdkafka.kcat_driver"), ("kcat",)),
]
