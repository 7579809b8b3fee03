"""A hook of MkDocs for our pages: `make site`.

The README of the repository is the front page, and files outside of docs/ that pages link to are
pages, too; links are rewritten. Some pages of the reference, such as one for each verb, are made
here from the code and are not in the repository. The navigation is made from docs/README.md.
"""

from __future__ import annotations

import functools
import logging
import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parent.parent
# Path in the repository → path in the site; all other pages are in the same place below docs/.
MOVED = {
    "README.md": "index.md",
    "docs/README.md": "contents.md",
    "CHANGELOG.md": "changelog.md",
    "AGENTS.md": "developing.md",
}
# By `generate.py --site`, which `make site` runs first: the site's environment lacks our packages.
MADE = ROOT / ".venv/site/pages"
# A link or picture, but for one in a line of code or to an address.
_LINK = re.compile(r"(?<!`)(\]\()(?![a-z]+:|#)([^)\s#]*)(#[^)\s]*)?\)")
_LOADED = re.compile(
    r'<(?:script|img|iframe|link [^>]*rel="?stylesheet)[^>]*(?:src|href)="(\w+://[^"]*)'
)
_FOR_TESTS = re.compile(r"^(```\w+) \w+$", re.MULTILINE)  # how a block is tested: AGENTS.md
_LOG = logging.getLogger("mkdocs.plugins.site_pages")


def on_config(config: MkDocsConfig) -> None:
    """Make the navigation from the list of all pages."""
    sections = navigation((ROOT / "docs/README.md").read_text(encoding="utf-8"))
    made = {name: f"reference/{name}" for name in made_pages()}
    verbs = [path for name, path in made.items() if name.startswith("commands/")]
    rest = [path for path in made.values() if path not in verbs]
    sections["Reference"] += [{"Commands": verbs}, *rest]
    decisions = sorted(p.name for p in (ROOT / "docs/adr").glob("0*.md"))
    sections["Decisions"] = ["adr/README.md", *(f"adr/{name}" for name in decisions)]
    project = [{"All pages": "contents.md"}, {"Changelog": "changelog.md"}, "developing.md"]
    config.nav = [{"gitgates": "index.md"}, *({k: v} for k, v in sections.items())]
    config.nav.append({"Project": project})


def navigation(contents: str) -> dict[str, list[Any]]:
    """Return heading → pages of a text with a list of links below each heading of two levels."""
    sections: dict[str, list[Any]] = {}
    for line in contents.splitlines():
        if line.startswith("## "):
            pages = section = sections.setdefault(line.removeprefix("## "), [])
        elif line.startswith("### "):
            pages = []
            section.append({line.removeprefix("### "): pages})
        elif entry := re.match(r"- \[(.*?)\]\((?!adr/)(.*?)\)", line):
            pages.append({entry[1]: entry[2]})
    return sections


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages from outside of docs/, and those that are elsewhere in the site."""
    for source, target in MOVED.items():
        if moved := files.get_file_from_path(source.removeprefix("docs/")):
            files.remove(moved)
        text = (ROOT / source).read_text(encoding="utf-8")
        files.append(File.generated(config, target, content=text))
    for name, text in made_pages().items():
        files.append(File.generated(config, f"reference/{name}", content=text))
    return files


@functools.cache
def made_pages() -> dict[str, str]:
    """Return file name in reference/ → text of the pages that only the site has."""
    return {
        str(path.relative_to(MADE)): path.read_text(encoding="utf-8")
        for path in sorted(MADE.rglob("*.md"))
    }


def on_page_markdown(markdown: str, page: Page, **_more: object) -> str:
    """Let links lead to the places that pages have in the site; name only languages of blocks."""
    page.meta["search"] = {"boost": boost(page.file.src_uri)}
    places = {target: source for source, target in MOVED.items()}
    source = places.get(page.file.src_uri, f"docs/{page.file.src_uri}")
    return _FOR_TESTS.sub(r"\1", with_links_of_site(markdown, source))


def boost(page: str) -> float:
    """Return how much the search prefers a page: what to do comes before what others mention."""
    if page.startswith(("how-to/", "tutorial/")) or page == "index.md":
        return 2
    return 0.5 if page.startswith(("adr/", "changelog", "developing", "reference/commands/")) else 1


def on_post_page(output: str, page: Page, **_more: object) -> None:
    """Warn of what a reader's browser would load from another host."""
    for address in _LOADED.findall(output):
        _LOG.warning("%s loads %s", page.file.src_uri, address)


def with_links_of_site(markdown: str, source: str) -> str:
    """Return the text of a file of the repository with links that are right in the site."""
    here = posixpath.dirname(_in_site(source))

    def link(match: re.Match[str]) -> str:
        opening, path, anchor = match[1], match[2], match[3] or ""
        target = posixpath.normpath(posixpath.join(posixpath.dirname(source), path))
        target = posixpath.join(target, "README.md") if path.endswith("/") else target
        return f"{opening}{posixpath.relpath(_in_site(target), here or '.')}{anchor})"

    return _LINK.sub(link, markdown)


def _in_site(path: str) -> str:
    return MOVED.get(path, path.removeprefix("docs/"))
