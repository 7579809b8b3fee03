"""What another run has stashed while its gates run: it counts as present."""

from __future__ import annotations

import os
import stat

from gitgates.core.errors import StateError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.files.memory import Memory
    from gitgates.git.repo import Repo
    from gitgates.store.rescue import StashedPath


def find_stashed(repo: Repo) -> tuple[StashedPath, ...]:
    """Return what another run has moved out of the working tree, or what was never in it.

    What this run has stashed is hidden on purpose. Raises: StateError if the journal
    cannot be understood.
    """
    if not os.path.isdir(f"{repo.state_abs}/rescue"):
        return ()
    from gitgates.store.rescue import Rescue  # most often, nothing is stashed

    rescue = Rescue(f"{repo.state_abs}/rescue")
    if not os.path.exists(rescue.at("journal")):
        return ()
    try:
        journal, saved = rescue.read(), set(os.listdir(rescue.at("saved")))
    except (StateError, OSError):
        if os.path.exists(rescue.at("journal")):
            raise
        return ()  # that run has just ended
    if journal.pid == os.getpid():
        return ()
    return tuple(entry for entry in journal.entries if not entry.saved or entry.saved in saved)


def stashed_entries(memory: Memory, stashed: tuple[StashedPath, ...]) -> bytes:
    """Store what is stashed; return it as input of `update-index -z --index-info`.

    Raises: OSError; the run that stashes may put it back meanwhile.
    """
    from gitgates.store.rescue import Rescue  # only if something is stashed

    rescue = Rescue(f"{memory.repo.state_abs}/rescue")
    lines, files = [], dict[str, str]()  # path → where it is now
    for entry in stashed:
        lines.append(f"0 {memory.nothing}\t{entry.path}")
        if entry.saved:
            _collect(rescue.at("saved", entry.saved), entry.path, files)
    ignored = set(
        _ignored(memory, [path for path in files if path not in {entry.path for entry in stashed}])
    )
    for path, place_abs in files.items():
        if path in ignored:
            continue
        mode = os.lstat(place_abs).st_mode
        if stat.S_ISLNK(mode):
            content, git_mode = os.fsencode(os.readlink(place_abs)), "120000"
        else:
            with open(place_abs, "rb") as file:
                content = file.read()
            git_mode = "100755" if mode & 0o100 else "100644"
        lines.append(f"{git_mode} {memory.write('blob', content)}\t{path}")
    return os.fsencode("".join(f"{line}\0" for line in lines))


def _collect(place_abs: str, path: str, files: dict[str, str]) -> None:
    """Collect a saved file, or all in a saved folder."""
    mode = os.lstat(place_abs).st_mode
    if stat.S_ISDIR(mode):
        names = sorted(os.listdir(place_abs))
        for name in names if ".git" not in names else ():  # a repository of its own
            _collect(f"{place_abs}/{name}", f"{path}/{name}", files)
    elif stat.S_ISREG(mode) or stat.S_ISLNK(mode):
        files[path] = place_abs


def _ignored(memory: Memory, paths: list[str]) -> list[str]:
    return memory.repo.git.ignored(paths, "--no-index") if paths else []
