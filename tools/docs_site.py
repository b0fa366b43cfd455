"""What mkdocs does not do by itself for the site: hooks, named in mkdocs.yml.

- Some pages lie outside docs/, where readers of the repository look for them (`ADOPTED`).
- Each program in examples/ is a page, with its source.
- A folder in the navigation stands for all its pages.
- A link to a file of the repository that is no page is shown as the name of that file, because a
  site has no sources beside it; if there is no such file, that is a warning: the build fails.
"""

import logging
import posixpath
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
ADOPTED = {
    "project/contributing.md": "CONTRIBUTING.md",
    "project/changes.md": "CHANGELOG.md",
    "project/compatibility-findings.md": "tests/compat/FINDINGS.md",
    "examples/index.md": "examples/README.md",
}
LANGUAGES = {".py": "python", ".sh": "bash"}
HOME = {"README.md": "index.md"}  # whoever links to the README means the first page
_log = logging.getLogger("mkdocs.plugins.site")  # strict builds count the warnings below this name
_LINK = re.compile(
    r"^ *```.*?^ *```$"  # code is left alone, in blocks and within lines
    r"|(?P<text>!?\[(?:`[^`\n]*`|[^\]`])*\])\((?P<target>[^)\s]+)\)"
    r"|`[^`\n]+`",
    re.MULTILINE | re.DOTALL,
)


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    if config.nav is not None:
        config.nav = _with_folders(config.nav)
    return config


def _with_folders(nav: object) -> list[object]:
    assert isinstance(nav, list), nav
    expanded: list[object] = []
    for entry in nav:
        if not isinstance(entry, dict):
            expanded.append(entry)
            continue
        ((title, below),) = entry.items()
        if isinstance(below, str) and below.endswith("/"):
            pages = sorted((DOCS / below).glob("*.md"))
            expanded.append({title: [f"{below}{page.name}" for page in pages]})
        else:
            expanded.append({title: _with_folders(below) if isinstance(below, list) else below})
    return expanded


def on_files(files: Files, config: MkDocsConfig) -> Files:
    for page, source in ADOPTED.items():
        files.append(File.generated(config, page, abs_src_path=str(ROOT / source)))
    for program in sorted((ROOT / "examples").iterdir()):
        if program.suffix in LANGUAGES:
            code = f"# {program.name}\n\n```{LANGUAGES[program.suffix]}\n{program.read_text()}```\n"
            page = f"examples/{program.name}.md"
            files.append(File.generated(config, page, content=code))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Links are written for the repository; here they are made to fit the site."""
    source = posixpath.dirname(ADOPTED.get(page.file.src_uri, f"docs/{page.file.src_uri}"))

    def fitting(link: re.Match[str]) -> str:
        target, hash_sign, anchor = (link["target"] or "").partition("#")
        if not target or re.match(r"\w+:", target):
            return link[0]
        path = posixpath.normpath(posixpath.join(source, target))
        place = _page_of(path)
        if place is None:
            if not (ROOT / path).exists():
                _log.warning(f"{page.file.src_uri} links to {target}, which does not exist")
            text = link["text"][1:-1]
            return text if path in text or "`" in text else f"{text} (`{path}`)"
        here = posixpath.dirname(page.file.src_uri)
        return f"{link['text']}({posixpath.relpath(place, here or '.')}{hash_sign}{anchor})"

    return _LINK.sub(fitting, markdown)


def _page_of(path: str) -> str | None:
    """The place in the site of a file of the repository."""
    for page, source in ADOPTED.items():
        if path == source:
            return page
    if path in HOME:
        return HOME[path]
    if posixpath.dirname(path) == "examples" and posixpath.splitext(path)[1] in LANGUAGES:
        return f"{path}.md"
    if path.startswith("docs/") and not (ROOT / path).is_dir():
        return path.removeprefix("docs/")
    return None
