"""Apache Kafka as a broker that the benchmark may start and end, and Kafka's own perf tools.

Maven resolves the jars of `pom.xml`; `kafka-server.properties` holds the settings and the reason
of each that is not as shipped. The JVM options are those of Kafka's own start scripts.
"""

import re
import signal
import subprocess
from pathlib import Path
from tempfile import NamedTemporaryFile

from runnel.client.raw import Address
from tests.support.kafka_tools import (
    CLUSTER_ID,
    QUIET,
    KafkaToolError,
    class_path,
    end_broker,
    free_port,
)

HERE = Path(__file__).resolve().parent
POM = HERE / "pom.xml"
PROPERTIES = HERE / "kafka-server.properties"
# kafka-server-start.sh and kafka-run-class.sh; a heap that is there from the start.
JVM_OPTIONS = (
    *("-Xmx1G", "-Xms1G", "-server", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20"),
    *("-XX:InitiatingHeapOccupancyPercent=35", "-XX:+ExplicitGCInvokesConcurrent"),
    *("-XX:MaxInlineLevel=15", "-Djava.awt.headless=true"),
)
TOOL_OPTIONS = ("-Xmx512M", "-XX:+UseG1GC", QUIET)  # a perf tool's heap, as its script sets it
STOP_TIMEOUT_S = 300.0  # with ten thousand partitions to sync
TOOL_TIMEOUT_S = 300.0
PAYLOADS = 1000


def kafka_version() -> str:
    (found,) = re.findall(r"<kafka.version>(.*)</kafka.version>", POM.read_text())
    return str(found)


class Kafka:
    """One Kafka broker on a data folder, broker and controller in one process, loopback only.

    The folder is formatted when this is made: `spawn` is the start alone.
    """

    def __init__(self, data_dir: Path) -> None:
        self._port, self._controller_port = free_port(), free_port()
        self._work_dir = data_dir.with_name(data_dir.name + ".kafka")
        self._work_dir.mkdir(parents=True)
        self._properties = self._work_dir / "server.properties"
        self._properties.write_text(PROPERTIES.read_text() + self._own_settings(data_dir))
        self._output = self._work_dir / "output.txt"
        self._process: subprocess.Popen[bytes] | None = None
        format_folder = ("format", "--cluster-id", CLUSTER_ID, "--config", str(self._properties))
        run_tool("kafka.tools.StorageTool", *format_folder)

    def _own_settings(self, data_dir: Path) -> str:
        broker, controller = f"127.0.0.1:{self._port}", f"127.0.0.1:{self._controller_port}"
        settings = {
            "listeners": f"PLAINTEXT://{broker},CONTROLLER://{controller}",
            "advertised.listeners": f"PLAINTEXT://{broker}",
            "controller.quorum.voters": f"1@{controller}",
            "log.dirs": str(data_dir),
        }
        return "".join(f"{name}={value}\n" for name, value in settings.items())

    @property
    def address(self) -> Address:
        return "127.0.0.1", self._port

    @property
    def pid(self) -> int:
        assert self._process is not None, "the broker is not running"
        return self._process.pid

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def log(self) -> str:
        return self._output.read_text(errors="replace") if self._output.exists() else ""

    def spawn(self) -> None:
        assert self._process is None, "the broker is running"
        java = ("java", *JVM_OPTIONS, QUIET, "-cp", class_path(POM))
        with self._output.open("ab") as output:
            self._process = subprocess.Popen(
                [*java, "kafka.Kafka", str(self._properties)],
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=self._work_dir,
            )

    def stop(self) -> None:
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        self._end(signal.SIGKILL)

    def _end(self, how: signal.Signals) -> None:
        assert self._process is not None, "the broker is not running"
        process, self._process = self._process, None
        end_broker(process, how, self._output, STOP_TIMEOUT_S)


def run_tool(main_class: str, *arguments: str) -> str:
    """What one of Kafka's tools prints. Raises KafkaToolError."""
    command = ["java", *TOOL_OPTIONS, "-cp", class_path(POM), main_class, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TOOL_TIMEOUT_S)
    if done.returncode != 0:
        raise KafkaToolError(f"{main_class} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


def producer_perf(address: Address, topic: str, *, records: int, record_bytes: int) -> float:
    """MB/s of kafka-producer-perf-test, its first part (a JVM that warms up) left out.

    It gets its values in a file: with `--record-size` it makes 1,024 random numbers for each
    record, and measures them.
    """
    with NamedTemporaryFile("w", suffix=".txt") as payloads:
        payloads.writelines(f"{number:0{record_bytes}d}\n" for number in range(PAYLOADS))
        payloads.flush()
        printed = _produced(address, topic, records, payloads.name)
    return parse_producer_perf(printed) * record_bytes / 1e6


def _produced(address: Address, topic: str, records: int, payload_file: str) -> str:
    return run_tool(
        "org.apache.kafka.tools.ProducerPerformance",
        *("--topic", topic, "--payload-file", payload_file, "--throughput", "-1"),
        *("--num-records", str(records), "--warmup-records", str(records // 3)),
        *("--command-property", f"bootstrap.servers={address[0]}:{address[1]}", "acks=1"),
        *("batch.size=1000000", "linger.ms=5", "max.request.size=1048576"),
        *("buffer.memory=67108864", "enable.idempotence=false"),
    )


def parse_producer_perf(printed: str) -> float:
    """Records per second after the warm-up."""
    found = re.search(
        r"^\d+ steady state records sent, ([\d.]+) records/sec", printed, re.MULTILINE
    )
    if found is None:
        raise KafkaToolError(f"no summary in what the perf tool printed:\n{printed}")
    return float(found[1])


def consumer_perf(address: Address, topic: str, *, records: int) -> float:
    """MB/s of kafka-consumer-perf-test over the time it fetched."""
    printed = run_tool(
        "org.apache.kafka.tools.ConsumerPerformance",
        *("--bootstrap-server", f"{address[0]}:{address[1]}", "--topic", topic),
        *("--num-records", str(records)),
    )
    return parse_consumer_perf(printed)


def parse_consumer_perf(printed: str) -> float:
    """`fetch.MB.sec` counts in 2**20 bytes, and without the time of joining the group."""
    if "WARNING" in printed:  # it gave up before it had all
        raise KafkaToolError(f"the perf tool did not get its records:\n{printed}")
    head, row = (line.split(", ") for line in printed.splitlines() if ", " in line)
    columns = dict(zip(head, row, strict=True))
    return float(columns["fetch.MB.sec"]) * 2**20 / 1e6
