"""Every example in README and docs is run, in the order of its document, against one broker.

A block that nobody would run is an error (`support/blocks.py`). docs/testing.md and docs/languages
have tests of their own, which say the same of theirs.
"""

import shlex
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.support.blocks import blocks_of
from tests.support.examples import ADDRESS, OTHER_ADDRESS, Example, agrees, examples_of
from tests.support.process import ROOT, BrokerProcess, environment
from tests.support.search_path import search_path as commands_in

HAVE_THEIR_OWN_TEST = ("docs/testing.md", "docs/languages/")
DOCUMENTS = [
    path
    for path in (
        *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "examples/README.md")),
        *sorted((ROOT / "docs").rglob("*.md")),
    )
    if not str(path.relative_to(ROOT)).startswith(HAVE_THEIR_OWN_TEST)
]
WITH_EXAMPLES = [path for path in DOCUMENTS if "```" in path.read_text()]
TOOLS = ("kcat", "jq")  # beside what every machine has; a document may use them
TIMEOUT_S = 240.0  # a start of Spark on a busy machine takes a minute


@pytest.mark.parametrize("document", WITH_EXAMPLES, ids=lambda path: str(path.relative_to(ROOT)))
@pytest.mark.timeout(600)
def test_examples(document: Path, tmp_path: Path) -> None:
    examples = list(examples_of(document))
    for tool in TOOLS:
        if any(tool in example.command.split() for example in examples) and not shutil.which(tool):
            pytest.skip(f"{tool} is not installed")
    if not examples:
        assert all(block.is_shown_only or block.run_by for block in blocks_of(document))
        return
    search_path = commands_in(tmp_path / "bin")
    work_dir = tmp_path / "work"
    activate = work_dir / ".venv/bin/activate"  # the search path has `runnel` and `python` already
    activate.parent.mkdir(parents=True)
    activate.touch()
    failures: list[str] = []
    with BrokerProcess(work_dir / "runnel-data", metrics=True) as broker:
        for example in examples:
            out, err, status = _run(example, broker, work_dir, search_path)
            # A document may leave out the remarks that go to standard error.
            agreed = agrees(example.output, out) or agrees(example.output, out + err)
            if not agreed or (status != 0) != example.has_to_fail:
                failures.append(
                    f"line {example.line}: {example.command}\nended with {status}:\n{out}{err}"
                )
    assert not failures, "\n".join([f"{len(failures)} of {len(examples)} differ", *failures])
    print(f"\n{document.name}: {len(examples)} examples", end="")


def _run(
    example: Example, broker: BrokerProcess, work_dir: Path, search_path: str
) -> tuple[str, str, int]:
    """What it printed, as the document would have it, and its exit status."""
    if example.starts_a_broker and example.has_settings:
        return _serve(example, work_dir, search_path)
    if example.starts_a_broker:
        ready = [line for line in broker.log.splitlines() if "is ready" in line]
        return _as_documented("\n".join(ready), broker, work_dir), "", 0
    command = example.command.replace(OTHER_ADDRESS, ADDRESS).replace(ADDRESS, broker.bootstrap)
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command],
        env=environment(
            {
                "RUNNEL_BOOTSTRAP_SERVER": broker.bootstrap,
                "RUNNEL_METRICS_URL": broker.http,
                "PATH": search_path,
            }
        ),
        cwd=work_dir,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
    )
    out, err = (_as_documented(text, broker, work_dir) for text in (done.stdout, done.stderr))
    return out, err, done.returncode


def _as_documented(text: str, broker: BrokerProcess, work_dir: Path) -> str:
    return text.replace(broker.bootstrap, ADDRESS).replace(f"{work_dir}/", "")


def _serve(example: Example, work_dir: Path, search_path: str) -> tuple[str, str, int]:
    """Another broker, set up as the example says but for its port, and stopped when it is ready."""
    ready_file = work_dir / "another.ready"
    ready_file.unlink(missing_ok=True)
    command = shlex.split(example.command)
    arguments = (
        "--port",
        "0",
        "--data-dir",
        f"another-{example.line}",
        "--ready-file",
        str(ready_file),
    )
    process = subprocess.Popen(
        ["env", *command, *arguments],
        env=environment({"PATH": search_path}),
        cwd=work_dir,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        deadline = time.monotonic() + TIMEOUT_S
        while not ready_file.exists() and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.01)
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
        out, _ = process.communicate(timeout=TIMEOUT_S)
    finally:
        process.kill()
    return out, "", process.returncode
