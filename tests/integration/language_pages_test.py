"""Every block of docs/languages is run: Python's here, other languages by `make compat`."""

from pathlib import Path

import pytest

from tests.compat.clients import LANGUAGE_PAGES
from tests.compat.languages.languages_suite import OTHER_ENVIRONMENT
from tests.support.pages import PAGES, Commands, File, PageError, Project, projects_of, run_project
from tests.support.process import BrokerProcess, environment
from tests.support.search_path import search_path

PYTHON = projects_of(PAGES / "python.md")
# The fixtures come by their module here: the installed entry point may be another version's.
PLUGIN = "-p no:runnel -p runnel.testing.pytest_plugin -p no:cacheprovider"


def test_every_page_is_run_somewhere() -> None:
    assert {page.stem for page in PAGES.glob("*.md")} == {"index", *LANGUAGE_PAGES}
    assert {project.name for project in PYTHON} > OTHER_ENVIRONMENT


@pytest.mark.parametrize(
    "project",
    [project for project in PYTHON if project.name not in OTHER_ENVIRONMENT],
    ids=lambda project: project.heading,
)
def test_python(project: Project, tmp_path: Path) -> None:
    """aiokafka and kafka-python have an environment of their own, and run in `make compat`."""
    with BrokerProcess(tmp_path / "data") as broker:
        variables = {
            "PATH": search_path(tmp_path / "bin"),
            "RUNNEL_BOOTSTRAP_SERVER": broker.bootstrap,
            "PYTEST_ADDOPTS": PLUGIN,
        }
        run_project(project, tmp_path / "work", broker.bootstrap, environment(variables))


@pytest.mark.parametrize("page", sorted(PAGES.glob("*.md")), ids=lambda page: page.stem)
def test_every_block_is_a_file_or_a_command(page: Path) -> None:
    for project in projects_of(page):
        assert any(isinstance(step, File) for step in project.steps), project.heading
        last = project.steps[-1]
        assert isinstance(last, Commands), f"nothing is run after {last.name}"


@pytest.mark.parametrize(
    ("block", "why"),
    [
        ("```go\nx\n```\n", "page.md:4: go without a title: nothing runs it"),
        ('```console title="Later"\n$ true\n```\n', 'commands have no title but "Install"'),
        ("```console not-run\n$ true\n```\n", "'not-run' is not title="),
    ],
)
def test_a_block_that_nothing_would_run_is_refused(tmp_path: Path, block: str, why: str) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"# Page\n\n## Client\n{block}")
    with pytest.raises(PageError, match=why):
        projects_of(page)
