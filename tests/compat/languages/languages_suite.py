"""The programs on one page of docs/languages, built and run: what it shows is what they print.

`python -m tests.compat.languages.languages_suite PAGE runnel|kafka`; every project of the page has
a broker of its own. Only what `Install` fetched and compiled is kept, in `build/compat/languages`.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path

from tests.compat.checks import Checks
from tests.compat.clients import pure_python
from tests.support.kafka_tools import CACHE, KafkaBroker, KafkaToolError
from tests.support.pages import PAGES, PageError, Project, projects_of, run_project
from tests.support.process import PACKAGES, BrokerError, BrokerProcess
from tests.support.search_path import search_path

SOON = {"group.initial.rebalance.delay.ms": "0"}
# Their compilations are shared with the drivers of the matrix, or made as those are.
BUILDING = {
    "CARGO_TARGET_DIR": str(CACHE / "rust/target"),
    "CARGO_PROFILE_DEV_DEBUG": "0",
    "CKJS_LINKING": "dynamic",
}
# The pure-Python clients live apart from the broker's environment; the others run in `make test`.
OTHER_ENVIRONMENT = {"python-aiokafka", "python-kafka-python"}
COMPILED_MODULES = {"node-confluentinc-kafka-javascript": CACHE / "node-librdkafka"}


def run(project: Project, broker_name: str) -> None:
    folder = CACHE / "languages" / project.name
    compiled = COMPILED_MODULES.get(project.name)
    if compiled is not None and compiled.exists() and not folder.exists():
        shutil.copytree(compiled, folder, copy_function=os.link, symlinks=True)
    kind = KafkaBroker if broker_name == "kafka" else BrokerProcess
    with (
        tempfile.TemporaryDirectory() as scratch,
        kind(Path(scratch) / "data", settings=SOON) as broker,
    ):
        environment = {
            **BUILDING,
            "PATH": search_path(Path(scratch) / "bin", _python(project)),
            "PYTHONPATH": str(PACKAGES),
            "RUNNEL_BOOTSTRAP_SERVER": broker.bootstrap,
        }
        run_project(project, folder, broker.bootstrap, environment)


def _python(project: Project) -> str:
    return pure_python() if project.name in OTHER_ENVIRONMENT else sys.executable


def main() -> None:
    page, broker_name = PAGES / sys.argv[1], sys.argv[2]
    checks = Checks((PageError, BrokerError, KafkaToolError, subprocess.TimeoutExpired))
    for project in projects_of(page):
        if page.stem == "python" and project.name not in OTHER_ENVIRONMENT:
            continue
        checks.check(f"{project.page.name}: {project.heading}", partial(run, project, broker_name))
    checks.end()


if __name__ == "__main__":
    main()
