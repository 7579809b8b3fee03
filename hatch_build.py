"""What the metadata of a release says that depends on where the source is published.

`repository` in pyproject.toml, [tool.hatch.metadata.hooks.custom], is the one place to set: the
address of the project's repository, on a forge that shows files at REPOSITORY/blob/TAG/PATH, and
serves them at REPOSITORY/raw/TAG/PATH. Where it is empty, nothing is linked.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

_LINK = re.compile(r"(!?)\[([^\]]*)\]\((?![a-z]+:|#)([^)]*)\)")


class Metadata(MetadataHookInterface):
    """Fills in `readme` and `urls`."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Set both for the version that is built."""
        repository = self.config["repository"].rstrip("/")
        files = f"{repository}/blob/v{metadata['version']}" if repository else ""
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        metadata["readme"] = {"content-type": "text/markdown", "text": absolute(text, files)}
        if repository:
            metadata["urls"] = {
                "Source": repository,
                "Documentation": f"{files}/docs/README.md",
                "Changelog": f"{files}/CHANGELOG.md",
                "Issues": f"{repository}/issues",
            }


def absolute(text: str, files: str) -> str:
    """Return Markdown whose links to files begin with `files`; without that, the names alone."""

    def link(match: re.Match[str]) -> str:
        is_picture, words, path = match.groups()
        if not files:
            return f"{words} (`{path}` in the source distribution)"
        where = files.replace("/blob/", "/raw/") if is_picture else files
        return f"{is_picture}[{words}]({where}/{path})"

    return _LINK.sub(link, text)
