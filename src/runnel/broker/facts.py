"""What an exporter is told once, as text: who this broker is, and what numbers are called."""

import os
import platform

import runnel
from runnel.errors import ErrorCode
from runnel.wire.apis import APIS


def facts_of(broker_id: int, cluster_id: str) -> dict[tuple[str, str], str]:
    return {
        ("process", "pid"): str(os.getpid()),
        ("build", "version"): runnel.__version__,
        ("build", "python"): platform.python_version(),
        ("build", "broker"): str(broker_id),
        ("build", "cluster"): cluster_id,
        **{("api", str(key)): api.name for key, api in APIS.items()},
        **{("error", str(int(code))): code.name for code in ErrorCode},
    }
