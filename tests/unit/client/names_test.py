"""The names of the library: all there, imported late, and one clear line where something lacks."""

import subprocess
import sys

import pytest

import runnel.client
from tests.support.process import environment


def test_all_names_are_there() -> None:
    for name in runnel.client.__all__:
        assert getattr(runnel.client, name) is not None
    with pytest.raises(AttributeError):
        runnel.client.Absent  # noqa: B018  # that is the point


def run(program: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment(), capture_output=True, text=True
    )
    return done.stdout + done.stderr


def test_commands_do_not_load_librdkafka() -> None:
    program = (
        "import sys; from runnel.client import admin; "
        "print([name for name in sys.modules if name.startswith('confluent')])"
    )
    assert run(program) == "[]\n"


def test_without_confluent_kafka() -> None:
    program = (
        "import sys; sys.modules['confluent_kafka'] = None\n"
        "from runnel.client import ProducerConfig, ClientError\n"
        "try:\n    from runnel.client import Producer\n"
        "except ImportError as error:\n    print(error)"
    )
    assert run(program) == "runnel.client needs confluent-kafka: pip install 'runnel[client]'\n"
