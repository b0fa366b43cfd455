"""The documentation is built without a warning; nothing in it leads nowhere or needs a network."""

import os
import posixpath
import re
import subprocess
import sys
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

import pytest

from tests.support.process import ROOT, environment

LOADED = {("script", "src"), ("img", "src"), ("iframe", "src"), ("source", "src"), ("link", "href")}
REPOSITORY_LINK = re.compile(r"!?\[(?:`[^`\n]*`|[^\]`])*\]\(([^)\s]+)\)")
CODE = re.compile(r"^ *```.*?^ *```$|(?<!\[)`[^`\n]+`(?!\])", re.MULTILINE | re.DOTALL)


class Reference(NamedTuple):
    target: str
    is_loaded: bool  # by the browser, without anybody's click


class _PageReader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.references: list[Reference] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if value is None:
                continue
            if name == "id" or (tag == "a" and name == "name"):
                self.anchors.add(value)
            elif name in ("href", "src"):
                self.references.append(Reference(value, (tag, name) in LOADED))


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "-d", str(folder)],
        cwd=ROOT,
        env=environment({"NO_MKDOCS_2_WARNING": "1"}),
        capture_output=True,
        text=True,
        timeout=110,
    )
    assert done.returncode == 0 and "WARNING" not in done.stderr, done.stdout + done.stderr
    return folder


@cache
def _read(page: Path) -> _PageReader:
    reader = _PageReader()
    reader.feed(page.read_text())
    return reader


def test_every_link_in_the_site_leads_somewhere(site: Path) -> None:
    pages = sorted(site.rglob("*.html"))
    assert len(pages) > 30
    broken: list[str] = []
    for page in pages:
        if page.name == "404.html":  # its links begin at the root of a server
            continue
        for target, is_loaded in _read(page).references:
            parts = urlsplit(target)
            if parts.scheme or parts.netloc:
                if is_loaded:
                    broken.append(f"{page.relative_to(site)} loads {target}")
                continue
            file = Path(os.path.normpath(page.parent / unquote(parts.path))) if parts.path else page
            if not file.is_file():
                broken.append(f"{page.relative_to(site)} leads to {target}")
            elif parts.fragment and not parts.fragment.startswith("__"):
                anchor = unquote(parts.fragment)
                if file.suffix == ".html" and anchor not in _read(file).anchors:
                    broken.append(f"{page.relative_to(site)} leads to {target}")
    assert not broken, "\n".join(broken)


def test_no_picture_loads_anything() -> None:
    outside = re.compile(r"""(url\(|@import|href=)\s*["']?\s*(https?:)?//""")
    pictures = sorted((ROOT / "docs/img").glob("*.svg"))
    assert len(pictures) > 3
    assert not [picture.name for picture in pictures if outside.search(picture.read_text())]


def test_the_site_has_every_page(site: Path) -> None:
    for page in (ROOT / "docs").rglob("*.md"):
        assert (site / page.relative_to(ROOT / "docs").with_suffix(".html")).is_file(), page


def test_links_between_files_of_the_repository() -> None:
    """As somebody reads them who has only the repository."""
    listed = subprocess.run(
        # What is in tools/ becomes part of a page, and has its links from there.
        ["git", "ls-files", "-co", "--exclude-standard", "*.md", ":!tools"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    broken: list[str] = []
    for name in listed.stdout.splitlines():
        if not (ROOT / name).is_file():
            continue
        folder = posixpath.dirname(name)
        if folder == "tools":  # what a page in docs/ is made of
            folder = "docs"
        for target in REPOSITORY_LINK.findall(CODE.sub("", (ROOT / name).read_text())):
            path, _, anchor = target.partition("#")
            if re.match(r"\w+:", target):
                continue
            file = posixpath.normpath(posixpath.join(folder, path or Path(name).name))
            is_there = (ROOT / file).exists() and not file.startswith("..")
            if is_there and anchor and file.endswith(".md"):
                is_there = anchor in _anchors(ROOT / file)
            if not is_there:
                broken.append(f"{name} leads to {target}")
    assert not broken, "\n".join(broken)


@cache
def _anchors(file: Path) -> set[str]:
    """Of headings, as repositories' web pages make them."""
    headings = re.findall(r"^#+ +(.*?)\s*$", CODE.sub("", file.read_text()), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
