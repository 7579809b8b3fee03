"""The first words of the latest prompt of each session, which save points are shown with.

undo.prompts   of one worktree
"""

from __future__ import annotations

from gitgates.store.files import make_folder, read_cached, replace_cached

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.git.repo import Repo

_LONGEST = 120  # characters
_MOST = 20  # sessions


def note_prompt(repo: Repo, session: str, text: str) -> None:
    """Keep the first words of a prompt. Raises: OSError."""
    words = _read(repo)
    words.pop(session, None)
    words[session] = " ".join(text.split())[:_LONGEST]
    make_folder(repo.state_abs)
    replace_cached(_path(repo), dict([*words.items()][-_MOST:]), sync=False)


def prompt_words(repo: Repo, session: str) -> str:
    """Return the first words of the latest prompt of a session; empty if unknown."""
    return _read(repo).get(session, "")


def _read(repo: Repo) -> dict[str, str]:
    words = read_cached(_path(repo))
    return words if isinstance(words, dict) else {}


def _path(repo: Repo) -> str:
    return f"{repo.state_abs}/undo.prompts"
