"""Kafka's own command-line tools against Runnel and against Kafka: what they print must be equal.

`python -m tests.compat.tools.tools_suite runnel`, or `kafka`, which compares Kafka with itself and
so proves the list of fields that may differ. One JVM runs all the commands on one broker.
`--verbose` shows what was compared, and every difference in full.
"""

import argparse
import base64
import difflib
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from tests.compat.tools.allowed import FIELDS, normalised
from tests.compat.tools.command import Command
from tests.compat.tools.commands import FILES, TOOLS, commands
from tests.support.kafka_tools import ALONE, ROOT, KafkaBroker, KafkaToolError, class_path
from tests.support.process import BrokerProcess

RUNNER = ROOT / "tests/compat/tools/ToolRunner.java"
RUN_TIMEOUT_S = 400.0
WHY_CHARACTERS_MAX = 300
NAME_CHARACTERS_MAX = 110
TIMED_OUT = -2
NOT_OF_THE_BROKER = ("\tat ", "ToolRunner$Ended")
# With eligible leader replicas Kafka writes min.insync.replicas into the cluster's configuration by
# itself, and every description shows it.
NO_ELR = ("--feature", "eligible.leader.replicas.version=0")


class Printed(NamedTuple):
    status: int
    out: str
    err: str


class Run(NamedTuple):
    data_dir: str
    printed: list[Printed]

    def lines(self, index: int) -> list[str]:
        """Everything comparable about one command."""
        status, out, err = self.printed[index]
        if status == TIMED_OUT:
            return [f"timed out on this broker after: {out[-200:]}{err[-200:]}"]
        return [f"status {status}", *normalised(out, self.data_dir), *_errors(err, self.data_dir)]


def _errors(text: str, data_dir: str) -> list[str]:
    """A stack trace is about where the client was, not about what the broker said.

    Neither is what a tool says of the runner's way to keep it from ending the process.
    """
    lines = normalised(text, data_dir)
    return [f"error: {line}" for line in lines if not line.startswith(NOT_OF_THE_BROKER)]


def run_all(kind: str, scratch: Path) -> Run:
    data_dir = scratch / "data"
    if kind == "kafka":
        broker: KafkaBroker | BrokerProcess = KafkaBroker(data_dir, format_options=NO_ELR)
    else:
        broker = BrokerProcess(data_dir, settings={"node.id": "1", **ALONE})
    for name, text in FILES.items():
        (scratch / name).write_text(text)
    script, results = scratch / "commands.txt", scratch / "results.txt"
    with broker:
        places = {"bootstrap": broker.bootstrap, "data": str(data_dir), "files": str(scratch)}
        script.write_text("".join(_line(command, places) for command in commands()))
        quiet = "-Dorg.slf4j.simpleLogger.defaultLogLevel=off"
        java = ["java", "-Xmx256m", "-XX:TieredStopAtLevel=1", quiet, "-cp", class_path()]
        done = subprocess.run(
            [*java, str(RUNNER), str(script), str(results)],
            capture_output=True,
            text=True,
            timeout=RUN_TIMEOUT_S,
        )
    if done.returncode != 0:
        raise KafkaToolError(f"the tools did not run: {done.stderr[-500:]}")
    return Run(str(data_dir), [_printed(line) for line in results.read_text().splitlines()])


def _line(command: Command, places: dict[str, str]) -> str:
    words = command.arguments.format(**places).split()
    stdin = base64.b64encode(command.stdin.encode()).decode()
    tool = command.tool.lstrip("&!")
    how = command.tool[: -len(tool)]
    return "\t".join([how + TOOLS[tool], stdin, *words]) + "\n"


def _printed(line: str) -> Printed:
    status, out, err = line.split("\t")
    return Printed(int(status), *(base64.b64decode(text).decode() for text in (out, err)))


def difference(kafka: list[str], other: list[str]) -> list[str]:
    return [
        line
        for line in difflib.unified_diff(kafka, other, "kafka", "other", lineterm="", n=0)
        if not line.startswith(("---", "+++", "@@"))
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description="Kafka's own tools, compared")
    parser.add_argument("broker", choices=["runnel", "kafka"])
    parser.add_argument("--verbose", action="store_true", help="print what was compared")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
        kafka = run_all("kafka", Path(one))
        subject = run_all(options.broker, Path(other))
    failed = 0
    for index, command in enumerate(commands()):
        told = difference(kafka.lines(index), subject.lines(index))
        name = str(command).replace("--bootstrap-server {bootstrap} ", "")[:NAME_CHARACTERS_MAX]
        if told:
            failed += 1
            print(f"fail\t{name}\t{' | '.join(told)[:WHY_CHARACTERS_MAX]}")
        else:
            print(f"pass\t{name}")
        if options.verbose:
            print("\n".join(f"    {line}" for line in told or kafka.lines(index)))
    print(f"{len(FIELDS)} fields may differ: {', '.join(field.name for field in FIELDS)}")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
