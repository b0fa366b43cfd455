"""The Python of docs/testing.md is run; its other clients and languages are in `make compat`."""

import subprocess
import sys
from pathlib import Path

from tests.plugin.documented import blocks, needs_other_client, write_tests
from tests.support.process import environment


def test_the_programs_run(tmp_path: Path) -> None:
    programs = [program for program in blocks("python") if not needs_other_client(program)]
    assert len(programs) == 3
    write_tests(tmp_path, programs)
    plugin = ("-p", "no:runnel", "-p", "runnel.testing.pytest_plugin", "-p", "no:cacheprovider")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-o", "python_files=*_test.py", *plugin],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=110,
    )
    assert done.returncode == 0, done.stdout
    assert "3 passed" in done.stdout


def test_every_program_is_run_somewhere() -> None:
    """Two more clients of Python by `make plugin`, Go and Java by `tests.compat.docs`."""
    assert sum(map(needs_other_client, blocks("python"))) == 2
    assert len(blocks("go")) == len(blocks("java")) == len(blocks("toml")) == 1


def test_the_settings_of_the_document_are_read(tmp_path: Path) -> None:
    (settings,) = blocks("toml")
    (tmp_path / "pyproject.toml").write_text(settings)
    (tmp_path / "settings_test.py").write_text(
        "import os\n"
        "from confluent_kafka.admin import AdminClient\n\n"
        "def test_settings(runnel_broker):\n"
        "    assert runnel_broker.pid == os.getpid()\n"
        "    admin = AdminClient({'bootstrap.servers': runnel_broker.bootstrap_servers})\n"
        "    admin.list_topics('absent', timeout=10)\n"
        "    assert not admin.list_topics(timeout=10).topics\n"
    )
    plugin = ("-p", "no:runnel", "-p", "runnel.testing.pytest_plugin", "-p", "no:cacheprovider")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", *plugin, "settings_test.py"],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stdout
