"""What this library is and stands on: the first thing to say when asking for help."""

import platform
from importlib.metadata import version

import runnel
from runnel.client.dependency import confluent_kafka


def client_info() -> dict[str, str]:
    """Versions, by name."""
    return {
        "client": "runnel",
        "version": runnel.__version__,
        "confluent-kafka": version("confluent-kafka"),
        "librdkafka": confluent_kafka.libversion()[0],
        "python": platform.python_version(),
        "platform": platform.platform(terse=True),
    }
