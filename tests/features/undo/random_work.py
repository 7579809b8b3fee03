"""Random work of agents, a person and git in one worktree, and a model of what it has to keep."""

from __future__ import annotations

import contextlib
import os
import random
import re
import shutil
import stat
from typing import TYPE_CHECKING

from points_support import LIMITS, files_of, found, record

from gitgates.core.errors import UsageError
from gitgates.features.undo.cli import Request, Selection, begun, go_back, last_undo, selected
from gitgates.features.undo.git_back import Wish
from gitgates.features.undo.moments import is_agents, recorded
from gitgates.files import points
from gitgates.files.memory import Memory
from gitgates.files.permissions import usual
from gitgates.git.object_store import read_blobs

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from conftest import Repo

    from gitgates.files.points import Point

    Files = dict[str, tuple[int, bytes]]

PATHS = ("a", "b.t", "d/x", "d/e/y", "a/z", "new\nline", ":(glob)*", os.fsdecode(b"d/\xff"), "d/e")
MODES = (0o644, 0o755, 0o600, 0o640, 0o444)
GIT = (
    ("add", "-A"),
    ("commit", "-qam", "work"),
    ("reset", "-q", "--hard"),
    ("reset", "-q"),
    ("reset", "-q", "--hard", "HEAD~1"),
    ("stash", "-u", "-q"),
    ("stash", "-q"),
    ("stash", "pop", "-q"),
    ("stash", "drop", "-q"),
    ("checkout", "-q", "--", "."),
    ("checkout", "-q", "-f", "-B", "topic"),
    ("checkout", "-q", "-f", "main"),
    ("branch", "-q", "-D", "topic"),
    ("clean", "-qfd"),
    ("rm", "-q", "-rf", "--ignore-unmatch", "d"),
    ("gc", "-q", "--prune=now"),
)
TOKEN = re.compile(rb"person\d+")


def start(repo: Repo) -> None:
    """Make a repository that converts line endings, and record its state."""
    repo.git("config", "core.autocrlf", "true")
    repo.git("config", "core.safecrlf", "false")
    repo.write(".gitattributes", "*.t text ident\n")
    repo.write(".gitignore", "*.log\n")
    for name in ("a", "b.t", "d/x"):
        repo.write(name, "".join(f"{number}\n" for number in range(30)))
    repo.ask("git", "add", ".")
    repo.git("commit", "-qm", "base")
    record(repo)


class Work:
    """The worktree, and what each of its states was."""

    def __init__(self, repo: Repo, seed: int) -> None:
        self.repo, self.root = repo, repo.path
        self.random = random.Random(seed)
        self.ours = found(repo)
        self.states: dict[str, Files] = {}
        self.indexes: dict[str, str] = {}
        self.written: dict[bytes, int] = {}  # what a person wrote → the newest point before it
        self.count = 0
        self.log: list[str] = []
        self.note()

    # What is done

    def step(self) -> None:
        """Do something, as somebody, and record it; or undo or redo."""
        choice = self.random.random()
        if choice < 0.12:
            self.undo()
            return
        if choice < 0.17:
            self.redo()
            return
        who = self.random.choice(("", "one", "two"))
        if choice < 0.4:
            words = self.random.choice(GIT)
            self.log.append(f"{who or 'person'}: git {' '.join(words)}")
            self.repo.ask("git", *words)
        else:
            for _ in range(self.random.randint(1, 3)):
                self.edit(who)
        record(self.repo, who)
        self.note()

    def edit(self, who: str) -> None:
        """Write, change, delete, link or move something."""
        path = self.root / self.random.choice(PATHS)
        action: Callable[[str, Path], None] = self.random.choice(
            (
                *(self._write, self._write, self._change, self._change, self._delete, self._mode),
                *(self._link, self._folder, self._move, self._ignored),
            )
        )
        self.log.append(f"{who or 'person'}: {action.__name__} {path.relative_to(self.root)}")
        with contextlib.suppress(OSError):
            action(who, path)

    def _token(self, who: str) -> bytes:
        self.count += 1
        token = b"%s%d" % (who.encode() or b"person", self.count)
        if not who:
            self.written[token] = max(self._ids(), default=0)
        return token

    def _write(self, who: str, path: Path) -> None:
        self._clear(path)
        end = self.random.choice((b"\n", b"\r\n", b"", b"\0\xff"))
        path.write_bytes(
            b"".join(b"%d%s" % (number, end) for number in range(9)) + self._token(who)
        )

    def _change(self, who: str, path: Path) -> None:
        lines = path.read_bytes().split(b"\n")
        place = self.random.randrange(len(lines))
        lines[place:place] = [self._token(who)]
        path.write_bytes(b"\n".join(lines))

    def _delete(self, _who: str, path: Path) -> None:
        shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()

    def _mode(self, _who: str, path: Path) -> None:
        if path.is_file() and not path.is_symlink():
            path.chmod(self.random.choice(MODES))

    def _link(self, _who: str, path: Path) -> None:
        self._clear(path)
        path.symlink_to(self.random.choice(("nowhere", "d", "a")))

    def _folder(self, _who: str, path: Path) -> None:
        self._clear(path)
        path.mkdir()

    def _move(self, _who: str, path: Path) -> None:
        other = self.root / self.random.choice(PATHS)
        if path.is_file() and not other.exists():
            self._clear(other)
            path.rename(other)

    def _ignored(self, who: str, path: Path) -> None:
        path.with_name("x.log").write_bytes(self._token(who))

    def _clear(self, path: Path) -> None:
        """Make room for a path, but over no work of a person's in another one."""
        if path.is_dir() and not path.is_symlink():
            path.rmdir()
        elif path.is_symlink():
            path.unlink()
        path.parent.mkdir(parents=True, exist_ok=True)

    # What is checked

    def note(self) -> None:
        """Keep what the present state is; it has to be one that is recorded."""
        state, now = self.latest().id, self.files()
        self.states.setdefault(state, now)
        differs = sorted(self.states[state].items() ^ now.items())
        assert not differs, self.said(f"a state is another one than it was: {differs}")
        self.indexes[state] = self.index()

    def latest(self) -> Point:
        """Return the last point."""
        point = points.latest(self.ours)
        assert point
        return point

    def files(self) -> Files:
        """Return the files that are not ignored."""
        return {
            path: each for path, each in files_of(self.root).items() if not path.endswith(".log")
        }

    def index(self) -> str:
        """Return what the index has."""
        return self.repo.git("ls-files", "--stage", "-z")

    def check_states(self) -> None:
        """Check that every state is whole, in bytes and modes, and its index can be put back."""
        for state, files in self.states.items():
            differs = sorted(self.stored(state).items() ^ files.items())
            assert not differs, self.said(f"a state differs from what it was: {differs}")

    def stored(self, state_id: str) -> Files:
        """Return what a state has, read from the store alone."""
        point = next(each for each in points.points(self.ours) if each.id == state_id)
        git, state = Memory(self.ours).reading, points.state_of(self.ours, point)
        entries = git.names("ls-tree", "-r", "-z", "--full-tree", point.tree)
        fields = [(entry.partition("\t")[2], *entry.split(" ")) for entry in entries]
        blobs = {path: rest[2].partition("\t")[0] for path, *rest in fields}
        contents = read_blobs(Memory(self.ours).reading, blobs.values())
        result: Files = {}
        for path, git_mode, *_rest in fields:
            mode = int(git_mode, 8)
            full = 0o120777 if stat.S_ISLNK(mode) else 0o100000 | usual(mode, state.umask)
            full = 0o100000 | state.modes[path] if path in state.modes else full
            result[path] = full, contents[blobs[path]]
        return result

    def undo(self) -> None:
        """Undo what an agent has done: the last, or all since some point of its session."""
        listed = recorded(self.ours)
        of_agents = [point for point in listed if is_agents(point)]
        if not of_agents:
            return
        chosen = self.random.choice(of_agents[-6:])
        selection = (
            Selection(last=True) if self.random.random() < 0.5 else Selection(id=chosen.number)
        )
        with contextlib.suppress(UsageError):
            self.go_back(selected(listed, selection))

    def redo(self) -> None:
        """Undo the last undo."""
        with contextlib.suppress(UsageError):
            self.go_back(last_undo(recorded(self.ours)))

    def go_back(self, wanted: list[Point]) -> None:
        """Undo points; check that nothing of anybody else is lost by it."""
        listed = recorded(self.ours)
        ids = {point.number for point in wanted}
        is_newest = {point.number for point in listed if point.number >= wanted[0].number} == ids
        with_index = self.random.random() < 0.5
        before, ignored, tips = self.tokens(), self.ignored(), self.tips()
        self.log.append(f"undo {sorted(ids)}")
        request = Request(wish=Wish(with_index, self.random.random() < 0.3))
        with begun(self.ours):
            go_back(self.ours, LIMITS, wanted, request)
        self.note()
        if is_newest and wanted[0].parent in self.states:
            differs = sorted(self.files().items() ^ self.states[wanted[0].parent].items())
            # Ignored files may be in a folder that was empty.
            differs = [(path, each) for path, each in differs if not (self.root / path).is_dir()]
            assert not differs, self.said(f"not what it was: {differs}")
            if with_index:
                assert self.index() == self.indexes[wanted[0].parent], self.said("the index")
        for entry in filter(None, self.index().split("\0")) if with_index else ():
            blob = entry.split(" ")[1]
            assert self.repo.ask("git", "cat-file", "-e", blob).returncode == 0, self.said(entry)
        now = self.tokens() | self.kept_tokens()
        lost = {token for token in before - now if self.written[token] >= wanted[0].number}
        assert not lost, self.said(f"lost: {lost}")
        gone = ignored - self.ignored() - self.kept_tokens()
        lost = {token for token in gone if self.written[token] >= wanted[0].number}
        assert not lost, self.said(f"of ignored files, lost: {lost}")
        lost_tips = tips.keys() - self.tips().keys()
        assert not lost_tips, self.said(f"{[tips[each] for each in lost_tips]} is nowhere")

    def tokens(self) -> set[bytes]:
        """Return what a person wrote, as far as it is in files now."""
        return {token for _, content in self.files().values() for token in TOKEN.findall(content)}

    def kept_tokens(self) -> set[bytes]:
        """Return what of it was kept beside."""
        state = self.root / ".git/gitgates"
        kept = [path for path in state.rglob("kept/*/**/*") if stat.S_ISREG(path.lstat().st_mode)]
        return {token for path in kept for token in TOKEN.findall(path.read_bytes())}

    def ignored(self) -> set[bytes]:
        """Return what a person wrote into ignored files."""
        contents = [path.read_bytes() for path in self.root.rglob("*.log")]
        return {token for content in contents for token in TOKEN.findall(content)}

    def tips(self) -> dict[str, str]:
        """Return commit → ref, or entry of the stash, that names it."""
        lines = self.repo.git("for-each-ref", "--format=%(objectname) %(refname)").split("\n")
        stash = self.repo.git("stash", "list", "--format=%H %gd").split("\n")
        return dict(line.split(" ") for line in (*lines, *stash) if line)

    def said(self, what: str) -> str:
        """Return a message with all that was done until now."""
        return "\n".join(map(ascii, [*self.log[-40:], what]))

    def _ids(self) -> list[int]:
        return [point.number for point in recorded(self.ours)]
