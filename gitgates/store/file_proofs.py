"""Passes of gates by file: one file for each gate and set of conditions, of digests alone.

A digest stands for a path and its content. Whatever damages such a file makes digests that no
content has, so the worst is that a gate runs again.
"""

from __future__ import annotations

import os

from gitgates.store.files import lock_file, make_folder, read_state, remove_file
from gitgates.store.proofs import FOLDER, digest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

SIZE = 16  # bytes of a digest
_LARGEST = 8 << 20  # bytes of a file: half a million passes
_MOST_FILES = 128
_LOCK_WAIT_S = 1.0


class FileProofs:
    """The passes of one gate under one set of conditions."""

    def __init__(self, shared_state_abs: str, gate: str, conditions: str) -> None:
        self._folder_abs = f"{shared_state_abs}/{FOLDER}/files"
        self._path_abs = f"{self._folder_abs}/{digest(gate, conditions)}"

    def read(self) -> set[bytes]:
        """Return all digests; none where they cannot be read."""
        try:
            content = read_state(self._path_abs) or b""
        except OSError:
            return set()
        return {content[at : at + SIZE] for at in range(0, len(content) - SIZE + 1, SIZE)}

    def add(self, digests: Iterable[bytes]) -> None:
        """Append digests. Raises: OSError where they cannot be written."""
        make_folder(self._folder_abs)
        if not os.path.exists(self._path_abs):
            self._remove_oldest()
        fd = lock_file(self._path_abs, wait_s=_LOCK_WAIT_S)
        if fd < 0:
            return  # the gate runs once more
        try:
            size = os.fstat(fd).st_size
            end = 0 if size > _LARGEST else size - size % SIZE  # what a killed writer left is cut
            os.ftruncate(fd, end)
            os.pwrite(fd, b"".join(digests), end)
        finally:
            os.close(fd)

    def _remove_oldest(self) -> None:
        """Make room for one more file."""
        with os.scandir(self._folder_abs) as entries:
            files = sorted(entries, key=lambda entry: entry.stat().st_mtime)
        for file in files[: len(files) // 2] if len(files) >= _MOST_FILES else ():
            remove_file(file.path)
