"""What `make try` and `make readme` stand on, as far as it can be seen without a network."""

import re
from pathlib import Path

import pytest

from tests.readme.run import Mismatch, refuse_skipped
from tests.support.blocks import ROOT, BlockError

PIN = re.compile(r"^([\w.-]+)==(\S+)", re.MULTILINE)


def test_what_runs_is_what_is_tested() -> None:
    """`make lock` writes both files; nobody should try other versions than the tests do."""
    tested = dict(PIN.findall((ROOT / "requirements.lock").read_text()))
    run = dict(PIN.findall((ROOT / "requirements-run.lock").read_text()))
    assert len(run) > 10
    assert run.items() <= tested.items()


def test_no_block_of_the_readme_is_skipped() -> None:
    refuse_skipped(ROOT / "README.md")


@pytest.mark.parametrize(
    "block", ["```\na drawing\n```\n", "<!-- run by make test -->\n```console\n$ ls\n```\n"]
)
def test_a_skipped_block_is_a_failure(tmp_path: Path, block: str) -> None:
    document = tmp_path / "README.md"
    document.write_text(f"# Words\n\n{block}")
    with pytest.raises(Mismatch, match=r"README.md:\d+: this block is not run"):
        refuse_skipped(document)


def test_an_unknown_language_is_a_failure(tmp_path: Path) -> None:
    document = tmp_path / "README.md"
    document.write_text("```fish\nls\n```\n")
    with pytest.raises(BlockError, match="nothing runs this fish"):
        refuse_skipped(document)
