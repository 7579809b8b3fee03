"""Make what a release contains and the repository does not.

The published protos of the Remote Execution API become one file of descriptors, which is the same
for each version of protobuf. Where grpcio-tools is missing, it is left out.

The metadata depends on where the source is published. `repository` in pyproject.toml,
[tool.hatch.metadata.hooks.custom], is the one place to set: the address of the project's
repository, on a forge that shows files at REPOSITORY/blob/TAG/PATH, and serves them at
REPOSITORY/raw/TAG/PATH. Where it is empty, nothing is linked.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

_API = "gitgates/features/remote/api"
_DESCRIPTORS = "gitgates/features/remote/protos.binpb"
_PROTOS = (
    "build/bazel/remote/execution/v2/remote_execution.proto",
    "google/bytestream/bytestream.proto",
)
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


class Protos(BuildHookInterface[Any]):
    """Compiles the protos, for wheels and editable installs."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002 - its interface
        """Write the descriptors beside the code that reads them."""
        if self.target_name != "wheel":
            return
        try:
            from grpc_tools import protoc
        except ImportError:
            self.app.display_warning(
                "grpcio-tools is not installed: this build cannot run gates on other machines"
            )
            return
        root = Path(self.root)
        arguments = ["protoc", f"-I{root / _API}", "--include_imports"]
        arguments += [f"-I{Path(protoc.__file__).parent / '_proto'}"]
        arguments += [f"--descriptor_set_out={root / _DESCRIPTORS}", *_PROTOS]
        if protoc.main(arguments):
            raise RuntimeError(f"protoc failed on {_API}; its messages are above")
        build_data["artifacts"].append(f"/{_DESCRIPTORS}")


def absolute(text: str, files: str) -> str:
    """Return Markdown whose links to files begin with `files`; without that, the names alone."""

    def link(match: re.Match[str]) -> str:
        is_picture, words, path = match.groups()
        if not files:
            return f"{words} (`{path}` in the source distribution)"
        where = files.replace("/blob/", "/raw/") if is_picture else files
        return f"{is_picture}[{words}]({where}/{path})"

    return _LINK.sub(link, text)
