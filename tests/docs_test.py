"""Every example in README and docs is run, in the order of its document, against one broker."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.examples import ADDRESS, OTHER_ADDRESS, Example, agrees, examples_of
from tests.support.process import ROOT, BrokerProcess, environment

HAVE_THEIR_OWN_TEST = {"docs/testing.md"}
DOCUMENTS = [
    path
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
    if str(path.relative_to(ROOT)) not in HAVE_THEIR_OWN_TEST and any(examples_of(path))
]
TOOLS = ("kcat", "jq")  # beside what every machine has; a document may use them
TIMEOUT_S = 60.0


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
@pytest.mark.timeout(600)
def test_examples(document: Path, tmp_path: Path) -> None:
    examples = list(examples_of(document))
    for tool in TOOLS:
        if any(tool in example.command.split() for example in examples) and not shutil.which(tool):
            pytest.skip(f"{tool} is not installed")
    search_path = _commands_in(tmp_path / "bin")
    work_dir = tmp_path / "work"
    work_dir.mkdir()
    failures: list[str] = []
    with BrokerProcess(work_dir / "runnel-data") as broker:
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
    if example.starts_a_broker:
        ready = [line for line in broker.log.splitlines() if "is ready" in line]
        return _as_documented("\n".join(ready), broker, work_dir), "", 0
    command = example.command.replace(OTHER_ADDRESS, ADDRESS).replace(ADDRESS, broker.bootstrap)
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command],
        env=environment({"RUNNEL_BOOTSTRAP_SERVER": broker.bootstrap, "PATH": search_path}),
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


def _commands_in(folder: Path) -> str:
    """A search path on which `runnel` and `python` are ours."""
    folder.mkdir()
    for name, arguments in (("runnel", "-m runnel"), ("python", "")):
        script = folder / name
        script.write_text(f'#!/bin/sh\nexec "{sys.executable}" {arguments} "$@"\n')
        script.chmod(0o755)
    return f"{folder}:{environment()['PATH']}"
