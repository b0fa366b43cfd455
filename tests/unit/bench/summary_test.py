"""README and the first page show what a recorded run says, and nothing else."""

from pathlib import Path

import pytest

from bench.summary import DOCUMENTS, PICTURE, PLACE, ROOT, fill, picture, read, source_of, summary


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_the_figures_are_those_of_the_run_that_is_named(document: Path) -> None:
    text = document.read_text()
    named = PLACE.search(text)
    assert named is not None
    run = ROOT / named["run"]
    recorded = read(run)
    lines = summary(recorded)
    how = f"run: python -m bench.summary {named['run']}"
    assert fill(text, run, lines) == text, how
    assert PICTURE.read_text() == picture(lines, source_of(run, recorded)), how


def test_a_run_of_a_few_cells_is_refused() -> None:
    with pytest.raises(ValueError, match="has no 'start to first answer'"):
        summary([{"kind": "run"}])
