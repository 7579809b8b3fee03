"""Import the package's modules from their .pyc files, as Python does, with fewer steps.

Python lists the folder of each package, looks for extension modules, and asks twice about each
source. Here it is one `stat` of the source, and the file in __pycache__ if Python would use it:
compiled by this version from a source of this size and time. Everything else is left to Python: it
compiles what has changed, and finds all other modules. See docs/adr/0001.
"""

from __future__ import annotations

import marshal
import os
import sys
from _frozen_importlib import ModuleSpec  # `importlib` would be three modules more
from _frozen_importlib_external import MAGIC_NUMBER, SourceFileLoader

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import CodeType

_ENDING = f".{sys.implementation.cache_tag}.pyc"
_HEADER_BYTES = 16


class PycLoader(SourceFileLoader):
    """Loads a module whose compiled code has been read already."""

    pyc = b""

    def get_code(self, _name: str) -> CodeType:
        """Return the code of the module."""
        code: CodeType = marshal.loads(memoryview(self.pyc)[_HEADER_BYTES:])  # noqa: S302 - as Python does
        return code


class PycFinder:
    """Finds the modules of this package that are compiled. Source: PEP 451."""

    @staticmethod
    def find_spec(
        name: str, path: Sequence[str] | None = None, _target: object = None
    ) -> ModuleSpec | None:
        """Return how to load a module; None: Python finds out."""
        if not path or not name.startswith("gitgates."):
            return None
        stem = name.rpartition(".")[2]
        try:
            return _find(name, path[0], stem) or _find(name, f"{path[0]}/{stem}", "__init__")
        except OSError:
            return None


def install() -> None:
    """Make imports from now on look here first."""
    sys.meta_path.insert(0, PycFinder)


def _find(name: str, folder_abs: str, stem: str) -> ModuleSpec | None:
    """Return how to load the module of a source file; None if that does not exist.

    Raises: OSError if it is not compiled, or cannot be read.
    """
    source_abs = f"{folder_abs}/{stem}.py"
    pyc_abs = f"{folder_abs}/__pycache__/{stem}{_ENDING}"
    try:
        now = os.stat(source_abs)
    except FileNotFoundError:
        return None
    loader = PycLoader(name, source_abs)
    with open(pyc_abs, "rb", buffering=0) as file:
        loader.pyc = file.read()
    if loader.pyc[:_HEADER_BYTES] != _header(int(now.st_mtime), now.st_size):
        return None
    spec = ModuleSpec(name, loader, origin=source_abs, is_package=stem == "__init__")
    if stem == "__init__":
        spec.submodule_search_locations = [folder_abs]
    spec.has_location, spec.cached = True, pyc_abs
    return spec


def _header(mtime: int, size: int) -> bytes:
    """Return the beginning of an up-to-date .pyc file. Source: PEP 552."""
    numbers = (0, mtime & 0xFFFFFFFF, size & 0xFFFFFFFF)
    return MAGIC_NUMBER + b"".join([number.to_bytes(4, "little") for number in numbers])
