"""What proofs that travel save, and what they cost: a second machine that runs nothing.

Somebody has run 40 gates of a second each, eight at once. Another clone, whose caches are cold,
finds their signed passes in git notes or in an HTTP cache. `--check` exits 1 where the median takes
more than 0.5 s, or more than a tenth of running the gates.

Then what `[tool.gitgates.proof]` adds to each commit of gates that do nothing, in a small
repository and in one of 10,000 files, and what `push = true` adds to a push.
"""

from __future__ import annotations

import argparse
import http.server
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

GATES, JOBS, SECONDS = 40, 8, 1
LONGEST_S, LARGEST_PART = 0.5, 0.1
ROUNDS = 5
FILES = 10_000
GITGATES = str(Path(sys.executable).with_name("gitgates"))
NAMES = [f"gate-{number}" for number in range(GATES)]
PROOF = """
[tool.gitgates.proof]
trust = ["bench@example.com"]
allowed_signers = "signers"
"""


class Entries(http.server.BaseHTTPRequestHandler):
    """A cache in memory, by path."""

    protocol_version = "HTTP/1.1"
    known: dict[str, bytes] = {}

    def do_GET(self) -> None:
        """Answer with an entry."""
        self._answer(200 if self.path in self.known else 404, self.known.get(self.path, b""))

    def do_PUT(self) -> None:
        """Keep an entry."""
        self.known[self.path] = self.rfile.read(int(self.headers["Content-Length"]))
        self._answer(201, b"")

    def log_message(self, *args: object) -> None:
        """Say nothing."""

    def _answer(self, status: int, content: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


class Bench:
    """A server of git, and clones of it that share nothing."""

    def __init__(self, folder: Path, command: str, settings: str, files: int = 0) -> None:
        self.folder = folder
        self.env = {
            **{
                k: v for k, v in os.environ.items() if not k.startswith(("GIT", "CLAUDE", "PYTHON"))
            },
            "HOME": str(folder),
            "GIT_CONFIG_NOSYSTEM": "1",
            "PATH": f"{Path(GITGATES).parent}:{os.environ['PATH']}",
        }
        folder.mkdir()
        key = folder / "key"
        self.run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key)
        for name, value in (
            ("user.name", "Bench"),
            ("user.email", "bench@example.com"),
            ("gpg.format", "ssh"),
            ("user.signingKey", str(key)),
            ("init.defaultBranch", "main"),
        ):
            self.run("git", "config", "--global", name, value)
        self.run("git", "init", "-q", "--bare", folder / "server.git")
        root = self.clone("first")
        names = "[" + ", ".join(f'"{name}"' for name in NAMES) + "]"
        tables = [
            f'[tool.gitgates.gates.{name}]\ncommand = "{command}"\nreuse = true\n' for name in NAMES
        ]
        hooks = [
            f'[tool.gitgates.hooks.{hook}]\nstrategy = "collect"\ngates = {names}\n'
            for hook in ("pre-commit", "pre-push")
        ]
        text = "".join([f"[tool.gitgates]\njobs = {JOBS}\n", *tables, *hooks, settings])
        (root / "pyproject.toml").write_text(text)
        (root / "signers").write_text(f"bench@example.com {key.with_suffix('.pub').read_text()}")
        for number in range(files):
            path = root / f"folder-{number // 100}/{number}.txt"
            path.parent.mkdir(exist_ok=True)
            path.write_text(f"{number}\n")
        self.git(root, "add", ".")
        self.git(root, "commit", "-q", "-m", "base")
        self.git(root, "push", "-q", "origin", "HEAD:main")
        self.git(root, "fetch", "-q")
        self.run(GITGATES, "install-hooks", cwd=root)

    def clone(self, name: str) -> Path:
        """Return a new clone."""
        root = self.folder / name
        self.run("git", "clone", "-q", self.folder / "server.git", root)
        return root

    def git(self, root: Path, *args: str) -> None:
        """Run git in a clone."""
        self.run("git", *args, cwd=root)

    def run(self, *argv: str | Path, cwd: Path | None = None, **env: str) -> str:
        """Run a program, which must not fail; return its output."""
        done = subprocess.run(
            argv, cwd=cwd, env=self.env | env, capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise SystemExit(f"{argv}: {done.stdout}{done.stderr}")
        return done.stdout + done.stderr

    def commit(self, root: Path) -> float:
        """Return how long a commit of one new file takes, in seconds."""
        path = root / f"new-{time.monotonic_ns()}"
        path.write_text(path.name)
        self.git(root, "add", ".")
        return took(lambda: self.git(root, "commit", "-q", "-m", path.name))


def took(do: Callable[[], object]) -> float:
    """Return how long something takes, in seconds."""
    began = time.monotonic()
    do()
    return time.monotonic() - began


def median(do: Callable[[], float]) -> float:
    """Return the median of all rounds."""
    return statistics.median(do() for _ in range(ROUNDS))


def reader(bench: Bench, *, by_notes: bool, by_push: bool) -> float:
    """Return how long a new clone takes for gates that somebody else has run."""
    root = bench.clone("reader")
    if by_notes:
        bench.run(GITGATES, "proof", "fetch", cwd=root)
    output: list[str] = []
    if by_push:
        bench.run(GITGATES, "install-hooks", cwd=root)
        push = ("git", "push", "--dry-run", "origin", f"HEAD:refs/heads/x{time.monotonic_ns()}")
        seconds = took(lambda: output.append(bench.run(*push, cwd=root)))
    else:
        seconds = took(lambda: output.append(bench.run(GITGATES, "run", cwd=root)))
    if output[0].count("reused") != GATES:
        raise SystemExit(f"not all are reused:\n{output[0]}")
    shutil.rmtree(root)
    return seconds


def measure_readers(folder: Path) -> bool:
    """Print how long a second machine takes; return whether that is short enough."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Entries) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}/bench"
        remote = f'[tool.gitgates.remote]\nverdicts = "{url}"\n'
        bench = Bench(folder, f"sleep {SECONDS}", PROOF + remote)
        bench.env["CI"] = "true"  # which may write to the cache
        running = bench.commit(folder / "first")
        del bench.env["CI"]
        bench.git(folder / "first", "push", "-q", "origin", "HEAD:main")
        rows = {
            "git push, by the cache": median(lambda: reader(bench, by_notes=False, by_push=True))
        }
        rows["run, by the cache"] = median(lambda: reader(bench, by_notes=False, by_push=False))
        server.shutdown()
    bench.run(GITGATES, "proof", "push", cwd=folder / "first")
    rows["git push, by notes"] = median(lambda: reader(bench, by_notes=True, by_push=True))
    rows["run, by notes"] = median(lambda: reader(bench, by_notes=True, by_push=False))
    print(f"{GATES} gates of {SECONDS} s, {JOBS} at once")
    print(f"  {'running them':<26}{running:>8.2f} s")
    for name, seconds in rows.items():
        print(f"  {name:<26}{seconds:>8.2f} s  {seconds / running:.3f}")
    return all(each <= min(LONGEST_S, LARGEST_PART * running) for each in rows.values())


def measure_writers(folder: Path) -> None:
    """Print what proofs add to commits and pushes."""
    for title, files in (("few files", 0), (f"{FILES:,} files", FILES)):
        print(f"\n{GATES} gates that do nothing, {title}")
        commits: dict[str, float] = {}
        pushes: dict[str, float] = {}
        for name, settings in (
            ("without proofs", ""),
            ("proof", PROOF),
            ("proof, push = true", f"{PROOF}push = true\n"),
        ):
            bench = Bench(folder / f"{files}-{name}", "true", settings, files)
            root = bench.folder / "first"
            bench.commit(root)

            def push(bench: Bench = bench, root: Path = root) -> float:
                bench.commit(root)
                return took(lambda: bench.git(root, "push", "-q", "origin", "HEAD:main"))

            commits[name] = median(lambda bench=bench, root=root: bench.commit(root))  # type: ignore[misc]
            pushes[name] = median(push)
            shutil.rmtree(bench.folder)
        for name, commit in commits.items():
            print(f"  {name:<26}commit {commit:>6.2f} s   push {pushes[name]:>6.2f} s")


def main() -> int:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="exit 1 where it takes too long")
    parser.add_argument("--readers", action="store_true", help="only what a second machine takes")
    parser.add_argument("--writers", action="store_true", help="only what it costs a first machine")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        is_short = options.writers or measure_readers(Path(folder) / "readers")
        if not options.readers:
            measure_writers(Path(folder))
    return 1 if options.check and not is_short else 0


if __name__ == "__main__":
    sys.exit(main())
