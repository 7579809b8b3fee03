"""Whatever is done to a working tree, a look finds what reading every byte finds."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from conftest import Repo
from files_support import ignored, listed, names, present, repository, seen, unusual

from gitgates.files.memory import Memory
from gitgates.files.stored import committed_tree

NAMES = (
    "a",
    "b.txt",
    "c.log",
    "d/e",
    "d/f.log",
    "d/g/h",
    "i/j.txt",
    "i/k",
    "ö\udce9",
    'q"q',
    "x y",
)
FOLDERS = ("d", "i", "d/g", "build", "logs", "new")
PATTERNS = ("*.log\n", "build/\n", "/i\n", "d/*\n!d/e\n", "*.txt\n", "k\n", "*\n")
CONTENTS = (b"", b"1\n", b"2\n", b"a\r\nb\r\n", b"$Id$\n", b"\x00\xff\n", b"aa\nbb\n" * 50)


class Work:
    """Random work in one working tree."""

    def __init__(self, repo: Repo, seed: int) -> None:
        self.repo = repo
        self.random = random.Random(seed)
        self.log: list[str] = []

    def git(self, *args: str) -> None:
        self.log.append("git " + " ".join(args))
        subprocess.run(
            ("git", "-c", "user.name=a", "-c", "user.email=a", "-c", "core.safecrlf=false", *args),
            cwd=self.repo.path,
            capture_output=True,
            check=False,
            stdin=subprocess.DEVNULL,
        )

    def path(self) -> Path:
        name = self.random.choice(NAMES)
        folder = self.random.choice(("", "", *FOLDERS))
        return self.repo.path / folder / name

    def name(self) -> str:
        return os.fsencode(os.path.relpath(self.path(), self.repo.path)).decode(
            "utf-8", "surrogateescape"
        )

    def write(self) -> None:
        path = self.path()
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            if path.is_symlink():
                path.unlink()
            path.write_bytes(self.random.choice(CONTENTS))
        except OSError:
            return
        self.log.append(f"write {path}")

    def append(self) -> None:
        path = self.path()
        if path.is_file() and not path.is_symlink():
            path.write_bytes(path.read_bytes() + b"more\n")
            self.log.append(f"append {path}")

    def replace_same_size(self) -> None:
        path = self.path()
        if path.is_file() and not path.is_symlink() and (content := path.read_bytes()):
            times = path.stat()
            path.write_bytes(bytes(byte ^ 1 for byte in content))
            if self.random.random() < 0.5:
                os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
            self.log.append(f"same size {path}")

    def touch(self) -> None:
        path = self.path()
        if path.exists():
            os.utime(path)
            self.log.append(f"touch {path}")

    def remove(self) -> None:
        path = self.path()
        path = self.random.choice((path, path.parent))
        if path == self.repo.path or not os.path.lexists(path):
            return
        self.log.append(f"remove {path}")
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()

    def chmod(self) -> None:
        path = self.path()
        if path.is_file() and not path.is_symlink():
            path.chmod(self.random.choice((0o644, 0o755, 0o600, 0o444, 0o664)))
            self.log.append(f"chmod {path}")

    def link(self) -> None:
        path = self.path()
        if not os.path.lexists(path) and path.parent.is_dir():
            path.symlink_to(self.random.choice(("a", "nowhere", "d", ".")))
            self.log.append(f"link {path}")

    def swap(self) -> None:
        """A folder in the place of a file, or the reverse, or a link to another folder."""
        folder = self.repo.path / self.random.choice(FOLDERS)
        if folder.is_dir() and not folder.is_symlink():
            shutil.rmtree(folder)
            if self.random.random() < 0.5:
                folder.write_bytes(b"a file\n")
            else:
                folder.symlink_to(self.random.choice(FOLDERS))
        elif os.path.lexists(folder):
            folder.unlink()
            folder.mkdir()
            (folder / "e").write_bytes(b"inside\n")
        self.log.append(f"swap {folder}")

    def move(self) -> None:
        source, target = self.path(), self.path()
        if os.path.lexists(source) and target.parent.is_dir() and not os.path.lexists(target):
            try:
                source.rename(target)
            except OSError:
                return
            self.log.append(f"move {source} {target}")

    def ignore(self) -> None:
        folder = self.random.choice((".", ".", *FOLDERS))
        path = self.repo.path / folder / ".gitignore"
        if not path.parent.is_dir() or path.parent.is_symlink() or path.is_symlink():
            return
        if path.exists() and self.random.random() < 0.4:
            path.unlink()
        else:
            path.write_text(self.random.choice(PATTERNS))
        self.log.append(f"ignore {path}")

    def exclude(self) -> None:
        path = Path(repository(self.repo).common_dir_abs) / "info/exclude"
        path.parent.mkdir(exist_ok=True)
        path.write_text(self.random.choice(("", *PATTERNS[:-1])))
        self.log.append("exclude")

    def attributes(self) -> None:
        path = self.repo.path / ".gitattributes"
        lines = ("* text=auto\n", "* eol=crlf\n", "*.txt ident\n", "a filter=up\n", "")
        path.write_text(self.random.choice(lines))
        self.log.append("attributes")

    def configure(self) -> None:
        self.git("config", "core.autocrlf", self.random.choice(("true", "input", "false")))

    def add(self) -> None:
        self.git("add", *self.random.choice((("-A",), ("-f", "--", self.name()), ("-N", "."))))

    def commit(self) -> None:
        self.git("commit", "-q", "-m", "x", *self.random.choice(((), ("-a",), ("--amend",))))

    def index(self) -> None:
        option = self.random.choice(
            (
                *("--assume-unchanged", "--no-assume-unchanged", "--skip-worktree"),
                *("--no-skip-worktree", "--force-remove", "--split-index", "--refresh"),
            )
        )
        self.git("update-index", option, "--", self.name())

    def switch(self) -> None:
        self.git(
            *self.random.choice(
                (
                    ("checkout", "-q", "-f", "-B", "one"),
                    ("checkout", "-q", "-f", "two"),
                    ("checkout", "-q", "-b", "two"),
                    ("stash", "-u", "-q"),
                    ("stash", "pop", "-q"),
                    ("reset", "-q", "--hard"),
                    ("reset", "-q"),
                    ("rm", "-r", "-q", "--cached", "--ignore-unmatch", "--", self.name()),
                    ("merge", "-q", "two"),
                    ("gc", "-q", "--prune=now"),
                    ("clean", "-fdq"),
                )
            )
        )

    def status(self) -> None:
        self.git("status")

    def steps(self) -> list[Callable[[], None]]:
        often = [
            self.write,
            self.append,
            self.replace_same_size,
            self.remove,
            self.add,
            self.commit,
        ]
        return [
            *often,
            *often,
            self.touch,
            self.chmod,
            self.chmod,
            self.link,
            self.swap,
            self.move,
            self.ignore,
            self.exclude,
            self.attributes,
            self.configure,
            self.index,
            self.index,
            self.switch,
            self.switch,
            self.status,
        ]

    def step(self) -> None:
        self.random.choice(self.steps())()

    def check(self) -> None:
        with_ignored = self.random.random() < 0.5
        found = seen(self.repo, ignored=with_ignored)
        expected = present(self.repo)
        self.compare("tree", listed(self.repo, found.tree), expected)
        modes = {path: mode for path, mode in found.modes.items() if path in expected}
        self.compare("modes", modes, unusual(self.repo, list(expected)))
        if with_ignored:
            self.compare("ignored", listed(self.repo, found.ignored), ignored(self.repo))
        assert found.unseen == ()
        if self.random.random() < 0.3:
            stored = committed_tree(repository(self.repo), found)
            added = listed(self.repo, self.added())
            # Those that were checked out when another rule was in force are as they are, and may
            # stay so in the index, whatever has touched them since.
            converted, ours = self.converted(), listed(self.repo, stored)
            added |= {
                path: expected[path]
                for path in expected
                if path not in converted
                or ours.get(path) == expected[path] == self.indexed().get(path)
            }
            self.compare("stored", ours, added)

    def compare(
        self, what: str, actual: Mapping[str, object], expected: Mapping[str, object]
    ) -> None:
        """In ASCII: what is not UTF-8 cannot be sent to the process that shows it."""
        wrong = {
            ascii(path): (actual.get(path), expected.get(path))
            for path in {*actual, *expected}
            if actual.get(path) != expected.get(path)
        }
        log = ascii("\n".join(self.log[-60:])).replace("\\n", "\n")
        assert not wrong, f"{what}: {wrong}\n{log}"

    def indexed(self) -> dict[str, tuple[str, str]]:
        """Path → mode and object in the user's index."""
        entries = (entry.partition("\t") for entry in names(self.repo, "--stage"))
        return {path: (meta.split()[0], meta.split()[1]) for meta, _tab, path in entries}

    def converted(self) -> set[str]:
        """The files that git may convert."""
        paths = present(self.repo)
        if self.repo.ask("git", "config", "core.autocrlf").stdout.strip() in {b"true", b"input"}:
            return set(paths)
        done = self.repo.ask(
            *("git", "check-attr", "-z", "--stdin", "text", "eol", "filter", "ident"),
            stdin=b"".join(os.fsencode(path) + b"\0" for path in paths),
        )
        fields = os.fsdecode(done.stdout).split("\0")
        pairs = zip(fields[::3], fields[2::3], strict=False)
        return {path for path, value in pairs if value != "unspecified"}

    def added(self) -> str:
        """The tree that `git add` of all present files would make."""
        real = repository(self.repo)
        index = self.repo.path.parent / "other-index"
        env = {
            **os.environ,
            "GIT_INDEX_FILE": str(index),
            "GIT_OBJECT_DIRECTORY": f"{Memory(real).folder_abs}/objects",
            "GIT_ALTERNATE_OBJECT_DIRECTORIES": f"{real.common_dir_abs}/objects",
        }
        index.unlink(missing_ok=True)
        users = Path(real.git_dir_abs) / "index"
        if users.exists():
            shutil.copy2(users, index)
        there = present(self.repo)
        entries = [line.split(" ", 1) for line in names(self.repo, "--cached", "-v")]
        gone = [path for tag, path in entries if tag != "H" or path not in there]
        calls = (
            (("update-index", "--force-remove", "-z", "--stdin"), gone),
            (("update-index", "--add", "--replace", "-z", "--stdin"), there),
            (("write-tree",), ()),
        )
        settings = ("-c", "core.safecrlf=false", "-c", "core.splitIndex=false")
        for args, paths in calls:
            done = subprocess.run(
                ("git", *settings, *args),
                cwd=self.repo.path,
                env=env,
                input=b"".join(os.fsencode(path) + b"\0" for path in paths),
                capture_output=True,
                check=True,
            )
        return done.stdout.decode().strip()


def run(repo: Repo, seed: int, steps: int) -> None:
    repo.git("config", "filter.up.clean", "tr a-z A-Z")
    other = Repo(repo.path.parent / "other")
    work, elsewhere = Work(repo, seed), Work(other, seed + 1)
    for number in range(steps):
        if number == steps // 3:
            work.git("commit", "-q", "--allow-empty", "-m", "first")
            work.git("worktree", "add", "-q", "--detach", str(other.path))
        has_other = other.path.is_dir()
        each = work.random.choice((work, work, elsewhere)) if has_other else work
        each.step()
        if work.random.random() < 0.4:
            each.check()
        if work.random.random() < 0.02:
            time.sleep(0.3 if steps > 500 else 0)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.slow
def test_a_look_finds_every_difference_and_no_other(repo: Repo, seed: int) -> None:
    run(repo, seed, steps=40)


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.nightly
def test_a_look_finds_every_difference_in_long_work(repo: Repo, seed: int) -> None:
    run(repo, seed + 100, steps=500)
