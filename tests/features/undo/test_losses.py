"""What commands would destroy that no commit holds: each way to write it, and what looks like it.

Each command runs for real afterwards: what is reported as lost is gone or changed, and where
nothing is reported, nothing that no commit holds is.
"""

from __future__ import annotations

import hashlib
import subprocess

import pytest
from conftest import Repo
from template_support import copy_of
from undo_support import losses

# In each repository: `changed` has unstaged changes, `staged` staged ones, `both` both, `new` is
# untracked, `fresh` staged as a new file, `clean` as committed, `sub/new` untracked, `build/x`
# and `.env` ignored; `dir` is an untracked folder with `a` and `b`.
_TRACKED = ("changed", "staged", "both")


@pytest.fixture(name="work")
def _work(repo: Repo) -> Repo:
    return fill(repo)


@pytest.fixture(name="copied")
def _copied() -> Repo:
    return copy_of(fill)


def fill(repo: Repo) -> Repo:
    repo.write(".gitignore", "build/\n.env\n*.pyc\n")
    for name in (*_TRACKED, "clean", "sub/clean"):
        repo.write(name, "1\n")
    repo.git("add", ".")
    repo.git("commit", "-qm", "one")
    repo.git("branch", "other")
    repo.git("checkout", "-q", "-b", "side")
    repo.write("side-file", "1\n")
    repo.git("add", "side-file")
    repo.git("commit", "-qm", "side")
    repo.git("checkout", "-q", "-")
    for name in ("staged", "both"):
        repo.write(name, "2\n")
    repo.write("fresh", "fresh\n")
    repo.git("add", "staged", "both", "fresh")
    for name in ("changed", "both", "new", "sub/new", "dir/a", "dir/b", "build/x", ".env"):
        repo.write(name, "3\n")
    return repo


def lost_paths(repo: Repo, command: str) -> set[str]:
    return {path for loss in losses(repo, command) for path in loss.paths}


_DISCARDED = "changed staged both fresh"
# Command → what it destroys, of the files above.
FILES = {
    "git reset --hard": _DISCARDED,
    "git reset --har": _DISCARDED,
    "git reset -q --hard HEAD": _DISCARDED,
    "git -C sub reset --hard": _DISCARDED,
    "cd sub && git reset --hard": _DISCARDED,
    "bash -c 'git reset --hard'": _DISCARDED,
    "git -c core.abbrev=9 --no-pager reset --hard": _DISCARDED,
    "git reset --merge": "staged both fresh",
    "git reset": "both",
    "git reset --keep": "both",
    "git checkout .": "changed both",
    "git checkout -- changed clean": "changed",
    "git checkout changed": "changed",
    "git checkout HEAD -- staged": "staged",
    "git checkout HEAD changed": "changed",
    "git checkout -f": _DISCARDED,
    "git checkout -qf other": _DISCARDED,
    "git checkout --force other": _DISCARDED,
    "git checkout -- '*a*'": "changed",
    "git switch -f other": _DISCARDED,
    "git switch --discard-changes other": _DISCARDED,
    "git restore .": "changed both",
    "git restore changed": "changed",
    "git restore -SW staged": "staged",
    "git restore --source=HEAD --staged --worktree .": _DISCARDED,
    "git restore --staged both staged": "both",
    "git checkout-index -f -a": "changed both",
    "git read-tree --reset -u HEAD": _DISCARDED,
    "git clean -f": "new sub/new",
    "git clean -fd": "new sub/new dir/a dir/b",
    "git clean -fd sub": "sub/new",
    "git -C sub clean -f": "sub/new",
    "git clean -fd -e new": "dir/a dir/b",
    "git clean -fdx": "new sub/new dir/a dir/b .env",
    "git clean -fX": ".env",
    "git -c clean.requireForce=false clean": "new sub/new",
    "git rm -f changed staged": "changed staged",
    "git rm --cached -f both": "both",
    "git mv -f clean changed": "changed",
    "rm changed": "changed",
    "rm -f new clean": "new",
    "rm -rf dir": "dir/a dir/b",
    "rm -rf sub build": "sub/new",
    "rm -rf ./dir/": "dir/a dir/b",
    "rm -rf *": f"{_DISCARDED} new sub/new dir/a dir/b",
    "rm -rf dir/{a,c}": "dir/a",
    "rm .env": ".env",
    "sudo rm -r dir": "dir/a dir/b",
    "for f in dir/*; do rm $f; done": "dir/a dir/b",
    "X=dir; rm -rf $X": "dir/a dir/b",
    "unlink new": "new",
    "shred -u new": "new",
    "find . -path './[!.]*' -delete": f"{_DISCARDED} new sub/new dir/a dir/b",
    "find . ! -path './.*' -type f -delete": f"{_DISCARDED} new sub/new dir/a dir/b",
    "find dir -type f -delete": "dir/a dir/b",
    "find . -name 'b' -delete": "dir/b",
    "find . -name 'b' -exec rm {} +": "dir/b",
    "find dir -exec rm -rf {} ';'": "dir/a dir/b",
    "find dir -type f | xargs rm": "dir/a dir/b",
    "find dir -print0 | xargs -0 rm -rf": "dir/a dir/b",
    "echo dir/a | xargs rm": "dir/a",
    "printf '%s\\n' dir/a new | xargs rm -f": "dir/a new",
    "parallel rm -f {} ::: dir/a clean": "dir/a",
    "mv clean changed": "changed",
    "mv -t dir sub/a a; mv a new": "",
    "cp clean new": "new",
    "cp -f clean dir/a": "dir/a",
    "cp clean dir/": "",
    "cp /dev/null changed": "changed",
    "install -m 644 clean new": "new",
    "ln -sf clean new": "new",
    "rsync -a --delete sub/ dir/": "dir/a dir/b",
    "echo x > changed": "changed",
    "echo x | tee new": "new",
    "echo x >| new": "new",
    ": > new": "new",
    "> new": "new",
    "cat clean > dir/a": "dir/a",
    "truncate -s 0 changed": "changed",
    "dd if=/dev/zero of=new count=1": "new",
    "sed -i s/3/4/ changed": "changed",
    "sed -i -e s/3/4/ changed": "changed",
    "sed -Ei 's/3/4/' changed new": "changed new",
    "perl -pi -e 's/3/4/' changed": "changed",
    "sort -o changed clean": "changed",
    "mv changed /dev/null": "changed",
}
# What only looks like it, or destroys nothing that no commit holds.
HARMLESS = (
    *("git status", "git stash", "git commit -m 'rm -rf src'", "echo 'git reset --hard'"),
    *("git checkout other", "git checkout -b x", "git checkout -", "git switch other"),
    *("git reset --soft HEAD~0", "git clean -n", "git clean -nfd", "git clean -fd --dry-run"),
    *("git clean", "git checkout -- clean", "git restore clean", "git restore --help"),
    *("git restore --staged staged", "git reset --help", "git rm clean", "git rm changed"),
    *("git branch -d side", "git branch -D other", "git branch -D nowhere", "git branch new-name"),
    *("git worktree remove nowhere", "git stash drop", "git stash list", "git stash clear"),
    *("rm nowhere", "rm -rf nowhere/*", "rm clean", "rm -rf build", "rm -f build/x", "rm dir"),
    *("rmdir dir", "rm -rf sub/clean", "rm --help", "find . -name '*.pyc' -delete"),
    *("find . -type d -empty -delete", "find . -name b", "rm -f .git/index.lock"),
    *("echo x > newfile", "echo x >> changed", "echo x | tee -a changed", "echo x > clean"),
    *("cat changed > /dev/null", "cmd > /dev/null 2>&1", "mv changed elsewhere", "mv new dir/"),
    *("mv -n clean changed", "cp -n clean changed", "cp changed copy", "cp nowhere changed"),
    *("cp -b clean changed", "sed s/a/b/ changed", "sed -i.bak s/3/4/ changed", "sed -n 1p new"),
    *("truncate -s +9 changed", "dd if=changed of=/dev/null", "rsync -n --delete sub/ dir/"),
    *("grep -r 'rm -rf' .", "sed -i s/a/b/ clean", "docker run x rm -rf /", "sort changed"),
    *(
        "git gc",
        "git gc --auto",
        "git reflog",
        "git reflog expire --expire=90.days",
        "git prune -n",
    ),
    *("git rebase --continue", "git filter-repo --analyze", "rm -rf $(mktemp -d)", "tee newfile"),
    *("echo '", "rm 'unterminated", "", "   ", "git", "rm", "git -C", "find", "xargs rm"),
    *("git submodule update --force", "git merge --continue", "git tag v1", "> $OUT", "cp a $B"),
)


# Of each program, and of each verb of git, what a shell really does: `make thorough` has all.
REAL = (
    *("git reset --hard", "bash -c 'git reset --hard'", "git reset --merge", "git reset --keep"),
    *("git checkout .", "git checkout HEAD -- staged", "git checkout -qf other", "git restore ."),
    *("git switch --discard-changes other", "git restore --staged both staged", "git clean -fdx"),
    *("git checkout-index -f -a", "git read-tree --reset -u HEAD", "git clean -fd -e new"),
    *("git rm -f changed staged", "git rm --cached -f both", "git mv -f clean changed"),
    *("rm -rf *", "rm -rf dir/{a,c}", "for f in dir/*; do rm $f; done", "shred -u new"),
    *("find . -path './[!.]*' -delete", "find dir -print0 | xargs -0 rm -rf", "mv clean changed"),
    *("mv -t dir sub/a a; mv a new", "cp clean new", "install -m 644 clean new", "> new"),
    *("ln -sf clean new", "echo x | tee new", "truncate -s 0 changed", "sort -o changed clean"),
    *("sed -Ei 's/3/4/' changed new", "git checkout -", "git clean -nfd", "rm -rf build"),
    *("find . -type d -empty -delete", "cp -n clean changed", "sed -n 1p new", "git gc"),
)


def test_what_a_command_destroys_of_files(work: Repo) -> None:
    expected = {command: set(paths.split()) for command, paths in FILES.items()}
    assert {command: lost_paths(work, command) for command in FILES} == expected


def test_what_destroys_nothing(work: Repo) -> None:
    mktemp = {("mktemp", "-d"): "/tmp/mktemp"}
    known = {"output_of": lambda words, _cwd: mktemp.get(words, "\ue000")}
    assert [command for command in HARMLESS if losses(work, command, **known)] == []


# What these take away is still somewhere; and programs that are not everywhere, or must not run
# here: as root, `mv` would put a file in the place of the device.
_KEPT = ("mv", "git stash", "git commit", ">>", "-a", "-b", ".bak", "+9", "git reset --merge")
_ELSEWHERE = ("sudo", "rsync", "parallel", "docker", "mktemp", "/dev/")


@pytest.mark.samples(len(REAL))
@pytest.mark.parametrize(
    "command",
    dict.fromkeys(
        command for command in (*REAL, *FILES, *HARMLESS) if not any(map(command.count, _ELSEWHERE))
    ),
)
def test_what_a_shell_really_destroys_is_reported(copied: Repo, command: str) -> None:
    before, reported = contents(copied), lost_paths(copied, command)
    run(copied, command)
    after = contents(copied)
    gone = {path for path in before if before[path] != after.get(path)}
    lost = {path for path in gone if not set(before[path]) <= {*after.get(path, ()), None}}
    if not any(map(command.count, _KEPT)):
        assert lost <= reported <= gone


def contents(repo: Repo) -> dict[str, tuple[str | None, str | None]]:
    """Return what no commit holds of each file, as blobs: in the worktree, and in the index."""
    names = repo.git("ls-files", "-co", "-z").split("\0")[:-1]
    staged, committed = blobs(repo, "ls-files", "-s", "-z"), blobs(repo, "ls-tree", "-rz", "HEAD")
    held = {}
    for name in {name for name in names if not name.startswith("build/")}:
        path = repo.path / name
        here = blob_of(path.read_bytes()) if path.is_file() else None
        both = here, staged.get(name)
        one, other = (None if blob == committed.get(name) else blob for blob in both)
        held[name] = (one, other)
    return held


def blobs(repo: Repo, *args: str) -> dict[str, str]:
    """Return path → blob, of a list that git makes."""
    entries = (entry.partition("\t") for entry in repo.git(*args).split("\0")[:-1])
    found = ((path, meta.split(" ")) for meta, _, path in entries)
    return {path: meta[2 if meta[1] == "blob" else 1] for path, meta in found}


def blob_of(content: bytes) -> str:
    return hashlib.sha1(b"blob %d\0%b" % (len(content), content)).hexdigest()


def run(repo: Repo, command: str) -> None:
    subprocess.run(
        ["bash", "-c", command],
        cwd=repo.path,
        check=False,
        timeout=20,
        stdin=subprocess.DEVNULL,
        capture_output=True,
    )
