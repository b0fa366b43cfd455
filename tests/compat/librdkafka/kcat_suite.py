"""kcat against a broker: list (-L), produce (-P), consume (-C), query by time (-Q).

Run as `python -m tests.compat.librdkafka.kcat_suite HOST:PORT`. kcat is Debian's, so it brings a
librdkafka that is years older than the one inside confluent-kafka: older API versions are used.
"""

import json
import subprocess
import sys
import time
from functools import partial

from tests.compat.checks import COMPRESSIONS, PATIENCE_S, Checks, topic_name

COUNT = 500


class Suite:
    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap

    def lists(self) -> None:
        metadata = json.loads(self._kcat("-L", "-J"))
        assert [broker["name"] for broker in metadata["brokers"]] == [self._bootstrap], metadata

    def reads_back_equal(self, compression: str) -> None:
        """The topic comes into being by its first use, as a person at a terminal would expect."""
        topic = topic_name("kcat", compression)
        lines = [f"key {index}:value {index}" for index in range(COUNT)]
        header = ["-H", "colour=blue", "-H", "colour=red"]
        produce = ["-P", "-t", topic, "-p", "0", "-K", ":", "-z", compression, *header]
        self._kcat(*produce, text="\n".join(lines))
        consume = ["-C", "-t", topic, "-p", "0", "-o", "beginning", "-e", "-q"]
        read = self._kcat(*consume, "-f", "%o %h %k:%s\\n").splitlines()
        wanted = [f"{index} colour=blue,colour=red {line}" for index, line in enumerate(lines)]
        assert read == wanted, f"{len(wanted)} lines sent, {len(read)} read, or they differ"

    def reads_the_tail(self) -> None:
        topic = topic_name("kcat", "tail")
        self._kcat("-P", "-t", topic, "-p", "0", text="\n".join(map(str, range(COUNT))))
        read = self._kcat("-C", "-t", topic, "-p", "0", "-o", "-3", "-e", "-q")
        assert read.split() == ["497", "498", "499"], read

    def queries_by_time(self) -> None:
        topic = topic_name("kcat", "query")
        before_ms = time.time_ns() // 1_000_000 - 60_000
        self._kcat("-P", "-t", topic, "-p", "0", text="one\ntwo")
        found = self._kcat("-Q", "-t", f"{topic}:0:{before_ms}")
        assert found.strip() == f"{topic} [0] offset 0", found
        end = self._kcat("-Q", "-t", f"{topic}:0:-1")
        assert end.strip() == f"{topic} [0] offset 2", end

    def _kcat(self, *arguments: str, text: str = "") -> str:
        command = ["kcat", "-b", self._bootstrap, *arguments]
        done = subprocess.run(
            command, input=text, capture_output=True, text=True, timeout=PATIENCE_S
        )
        assert done.returncode == 0, f"{' '.join(command)}: {done.stderr}"
        return done.stdout


def main() -> None:
    suite = Suite(sys.argv[1])
    checks = Checks((subprocess.TimeoutExpired,))
    checks.check("-L", suite.lists)
    for compression in COMPRESSIONS:
        checks.check(f"-P, -C: {compression}", partial(suite.reads_back_equal, compression))
    checks.check("-C of the last three", suite.reads_the_tail)
    checks.check("-Q by time", suite.queries_by_time)
    checks.end()


if __name__ == "__main__":
    main()
