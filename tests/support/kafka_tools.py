"""Apache Kafka itself as an oracle: a real broker in a process, and its own command-line tools.

Maven resolves the jars that `tests/compat/kafka/pom.xml` names; the class path is kept under
`build/`, so only the first use on a machine asks Maven. Nothing here imports `runnel`: what Kafka
says must not depend on our own code. A broker runs in combined KRaft mode (broker and controller
in one process), listens on the loopback only, and is ended by its owner, by its own process id.
"""

import hashlib
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

ROOT = Path(__file__).resolve().parents[2]
KAFKA_POM = ROOT / "tests/compat/kafka/pom.xml"
CACHE = ROOT / "build/compat"

CLUSTER_ID = "4L6g3nShT-eMCtK--X86sw"  # fixed, so that tests can name it
START_TIMEOUT_S = 60.0
# What a broker without others needs; its own topics have one partition, so that it starts soon.
ALONE: Final[Mapping[str, str]] = {
    "offsets.topic.replication.factor": "1",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.num.partitions": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "group.initial.rebalance.delay.ms": "0",
}
STOP_TIMEOUT_S = 30.0
TOOL_TIMEOUT_S = 120.0
MAVEN_TIMEOUT_S = 600.0

QUIET = "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"
CLASS_PATH_GOAL = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:build-classpath"


class KafkaToolError(Exception):
    """Maven, a tool or a broker did not do its part; the message holds what it printed."""


def class_path(pom: Path = KAFKA_POM, properties: Mapping[str, str] | None = None) -> str:
    """The jars of a pom and all they need, joined for `java -cp`; properties are Maven's -D."""
    defined = [f"-D{name}={value}" for name, value in (properties or {}).items()]
    digest = hashlib.sha256(pom.read_bytes() + "".join(defined).encode()).hexdigest()[:16]
    cached = CACHE / f"class-path-{digest}.txt"
    if cached.exists():
        jars = cached.read_text()
        if all(Path(jar).exists() for jar in jars.split(":")):
            return jars
    CACHE.mkdir(parents=True, exist_ok=True)
    maven = shutil.which("mvn")
    if maven is None:
        raise KafkaToolError("Maven (mvn) is not installed, and Kafka's jars come by it")
    command = [maven, "-q", "-B", "-f", str(pom), CLASS_PATH_GOAL, f"-Dmdep.outputFile={cached}"]
    command += defined
    done = subprocess.run(command, capture_output=True, text=True, timeout=MAVEN_TIMEOUT_S)
    if done.returncode != 0:
        raise KafkaToolError(f"Maven failed for {pom.name}:\n{done.stdout}{done.stderr}")
    return cached.read_text()


def run_tool(main_class: str, arguments: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """Run one of Kafka's tools to its end. The caller judges the exit code and the output."""
    command = ["java", "-Xmx256m", QUIET, "-cp", class_path(), main_class, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=TOOL_TIMEOUT_S)


def dump_log(files: Sequence[Path], *options: str) -> subprocess.CompletedProcess[str]:
    """Kafka's own DumpLogSegments over logs, indexes, time indexes, snapshots."""
    names = ",".join(str(file) for file in files)
    return run_tool("org.apache.kafka.tools.DumpLogSegments", ["--files", names, *options])


def free_port() -> int:
    """A port that was free a moment ago. Kafka cannot be told to pick one itself."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class KafkaBroker:
    """One Kafka broker on a data folder; formats the folder at its first start.

    Use as a context manager, or call `start` and then `stop` (clean) or `kill` (as a crash does).
    `start` may be called again after either: the folder and the ports stay the same.
    """

    def __init__(
        self,
        data_dir: Path,
        *,
        settings: Mapping[str, str] | None = None,
        heap_mb: int = 512,
        jvm_options: Sequence[str] = (),
        format_options: Sequence[str] = (),
    ) -> None:
        self.data_dir = data_dir
        self.bootstrap = f"127.0.0.1:{free_port()}"
        self._controller = f"127.0.0.1:{free_port()}"
        self._settings = dict(settings or {})
        self._java = ["java", f"-Xmx{heap_mb}m", f"-Xms{heap_mb}m", QUIET, *jvm_options]
        self._format_options = format_options
        self._work_dir = data_dir.with_name(data_dir.name + ".kafka")
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        assert self._process is not None, "the broker is not running"
        return self._process.pid

    @property
    def output(self) -> str:
        """What the broker has printed: warnings and errors only."""
        printed = self._work_dir / "output.txt"
        return printed.read_text(errors="replace") if printed.exists() else ""

    def start(self) -> None:
        """Returns when the broker answers Metadata with itself in it."""
        assert self._process is None, "the broker is running"
        self._work_dir.mkdir(parents=True, exist_ok=True)
        properties = self._work_dir / "server.properties"
        properties.write_text(self._properties())
        if not (self.data_dir / "meta.properties").exists():
            self._format(properties)
        command = [*self._java, "-cp", class_path(), "kafka.Kafka", str(properties)]
        with (self._work_dir / "output.txt").open("ab") as output:
            self._process = subprocess.Popen(
                command, stdout=output, stderr=subprocess.STDOUT, cwd=self._work_dir
            )
        self._await_ready()

    def stop(self) -> None:
        """SIGTERM: the broker flushes, writes its snapshots and the clean-shutdown marker."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """SIGKILL: what a crash of the process leaves behind."""
        self._end(signal.SIGKILL)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._process is not None:
            self.stop()

    def _properties(self) -> str:
        settings = {
            "process.roles": "broker,controller",
            "node.id": "1",
            "controller.quorum.voters": f"1@{self._controller}",
            "controller.listener.names": "CONTROLLER",
            "listeners": f"PLAINTEXT://{self.bootstrap},CONTROLLER://{self._controller}",
            "advertised.listeners": f"PLAINTEXT://{self.bootstrap}",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "log.dirs": str(self.data_dir),
            **ALONE,
            **self._settings,
        }
        return "".join(f"{name}={value}\n" for name, value in settings.items())

    def _format(self, properties: Path) -> None:
        self.data_dir.mkdir(parents=True, exist_ok=True)
        arguments = ["format", "--cluster-id", CLUSTER_ID, "--config", str(properties)]
        arguments += self._format_options
        done = run_tool("kafka.tools.StorageTool", arguments)
        if done.returncode != 0:
            raise KafkaToolError(f"formatting failed:\n{done.stdout}{done.stderr}")

    def _await_ready(self) -> None:
        assert self._process is not None
        deadline = time.monotonic() + START_TIMEOUT_S
        # The client would print every refused connection; they are expected here.
        admin = AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0})
        while time.monotonic() < deadline:
            code = self._process.poll()
            if code is not None:
                self._process = None
                raise KafkaToolError(f"the broker ended with {code}:\n{self.output}")
            try:
                if admin.list_topics(timeout=1).brokers:
                    return
            except KafkaException:
                time.sleep(0.1)
        self.kill()
        raise KafkaToolError(f"no answer within {START_TIMEOUT_S} s:\n{self.output}")

    def _end(self, how: signal.Signals) -> None:
        assert self._process is not None, "the broker is not running"
        process, self._process = self._process, None
        end_broker(process, how, self._work_dir / "output.txt", STOP_TIMEOUT_S)


def end_broker(
    process: subprocess.Popen[bytes], how: signal.Signals, output: Path, timeout_s: float
) -> None:
    """Raises KafkaToolError with what it printed if it has to be killed."""
    process.send_signal(how)
    try:
        process.wait(timeout_s)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        printed = output.read_text(errors="replace")
        raise KafkaToolError(f"the broker did not stop:\n{printed}") from None
