"""A cache of verdicts on a real nginx, configured as the docs say: TLS, passwords, DAV."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from cache_support import Said, make_certificates
from conftest import SRC, Repo
from nginx_support import NGINX, needs_nginx

from gitgates.features.remote.verdict_cache import Server

PAGE = SRC / "docs/how-to/verdict-cache.md"
ENTRIES = {f"{number:064x}": b'{"payload": "%d"}' % number for number in range(40)}
WHOLE = """\
daemon off;
pid {folder}/pid;
error_log {folder}/error.log;
events {{}}
http {{
access_log {folder}/access.log;
{paths}
{server}
}}
"""

pytestmark = needs_nginx


GATES = 40
CONFIG = """
[proof]
trust = ["ci@example.com"]
allowed_signers = "signers"
[remote]
verdicts = "{nginx.url}"
ca = "{nginx.folder}/ca.pem"
[hooks.pre-commit]
strategy = "collect"
gates = [{names}]
"""
GATE = """
[gates.{name}]
command = "echo {name} >> $LOG"
reuse = true
"""


class Nginx:
    """nginx with the configuration of the docs, in a folder and on a port of its own."""

    process: subprocess.Popen[bytes]

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        make_certificates(folder)
        with socket.create_server(("127.0.0.1", 0)) as listener:
            self.port = listener.getsockname()[1]
        (folder / "srv").mkdir()
        for name, users in (("writers", ["ci"]), ("readers", ["ci", "team"])):
            argv = ["openssl", "passwd", "-apr1"]
            lines = [f"{user}:{self._ask(*argv, f'secret of {user}')}" for user in users]
            (folder / f"verdicts.{name}").write_text("".join(lines))
        for user in ("ci", "team"):
            text = f'machine localhost login {user} password "secret of {user}"\n'
            (folder / f"netrc.{user}").write_text(text)
        (folder / "nginx.conf").write_text(self._config())
        self.url = f"https://localhost:{self.port}/gitgates"

    def _config(self) -> str:
        found = re.search(r"```nginx\n(.*?)```", PAGE.read_text(), re.DOTALL)
        assert found
        server = found[1]
        for before, after in (
            ("listen 443", f"listen 127.0.0.1:{self.port}"),
            ("cache.example.com", "localhost"),
            ("/etc/ssl/certs/cache.pem", f"{self.folder}/server.pem"),
            ("/etc/ssl/private/cache.key", f"{self.folder}/server.key"),
            ("/srv/verdicts", f"{self.folder}/srv"),
            ("/etc/nginx/verdicts.", f"{self.folder}/verdicts."),
        ):
            assert before in server
            server = server.replace(before, after)
        kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        paths = "".join(f"{kind}_temp_path {self.folder}/{kind};\n" for kind in kinds)
        user = f"user {self._ask('id', '-un').strip()};\n" if not os.geteuid() else ""
        return user + WHOLE.format(folder=self.folder, paths=paths, server=server)

    def _ask(self, *argv: str) -> str:
        return subprocess.run(argv, check=True, capture_output=True, text=True).stdout

    def server(self, user: str = "") -> Server:
        netrc = str(self.folder / f"netrc.{user}") if user else ""
        return Server(self.url, ca=str(self.folder / "ca.pem"), netrc=netrc)

    def files(self) -> set[str]:
        return {path.name for path in (self.folder / "srv/gitgates/ac").iterdir()}


@pytest.fixture(name="nginx")
def _nginx(tmp_path: Path) -> Iterator[Nginx]:
    folder = tmp_path / "nginx"
    folder.mkdir()
    nginx = Nginx(folder)
    argv = [NGINX, "-p", str(folder), "-c", str(folder / "nginx.conf")]
    with subprocess.Popen(argv, stderr=subprocess.PIPE) as process:
        nginx.process = process
        try:
            until_s = time.monotonic() + 10
            while not (folder / "pid").exists():
                assert process.poll() is None, process.communicate()[1]
                assert time.monotonic() < until_s
                time.sleep(0.02)
            yield nginx
        finally:
            process.terminate()


@pytest.mark.in_ci
def test_ci_writes_and_people_read(nginx: Nginx) -> None:
    ci = Said(nginx.server("ci"))
    assert ci.cache.get(ENTRIES) == {}
    ci.cache.put(ENTRIES)
    assert ci.lines == []
    assert nginx.files() == set(ENTRIES)
    person = Said(nginx.server("team"), writes=False)
    assert person.cache.get(ENTRIES) == ENTRIES
    person.cache.close()
    assert person.lines == []


def test_who_may_not_write_or_read_is_told(nginx: Nginx) -> None:
    person = Said(nginx.server("team"))
    person.cache.put(ENTRIES)
    assert person.lines == [f"cache {nginx.url}: PUT: 401 Unauthorized"]
    stranger = Said(nginx.server())
    assert stranger.cache.get(ENTRIES) == {}
    assert stranger.lines == [f"cache {nginx.url}: GET: 401 Unauthorized"]
    assert not (nginx.folder / "srv/gitgates").exists()


def test_full_disk_and_restart(nginx: Nginx) -> None:
    """A folder that nobody can write to is as a full disk is to nginx: status 500."""
    ci = Said(nginx.server("ci"))
    ci.cache.put(dict(list(ENTRIES.items())[:1]))
    (nginx.folder / "srv/tmp").rename(nginx.folder / "srv/gone")
    (nginx.folder / "srv/tmp").write_text("no folder")
    full = Said(nginx.server("ci"))
    full.cache.put(ENTRIES)
    assert full.lines == [f"cache {nginx.url}: PUT: 500 Internal Server Error"]
    again = Said(nginx.server("ci"))
    assert len(again.cache.get(ENTRIES)) == 1
    again.cache.close()


def test_check(nginx: Nginx, repo: Repo) -> None:
    repo.write(
        "gitgates.toml",
        f'[remote]\nverdicts = "{nginx.url}"\nca = "{nginx.folder}/ca.pem"\n'
        f'netrc = "{nginx.folder}/netrc.ci"\n',
    )
    done = repo.gitgates("remote", "check", env={"CI": "true"})
    assert done.returncode == 0, done.stdout
    assert done.stdout.count(b" ok: ") == 3
    assert b"secret" not in done.stdout + done.stderr


class Machine:
    """A clone with a home, a user and a key of its own."""

    def __init__(self, nginx: Nginx, place: Path, name: str, origin: Path) -> None:
        home = place / name
        home.mkdir()
        key = home / "key"
        argv = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)]
        subprocess.run(argv, check=True)
        (home / "gitconfig").write_text(
            f"[user]\nname = {name}\nemail = {name}@example.com\nsigningKey = {key}\n"
            "[gpg]\nformat = ssh\n[init]\ndefaultBranch = main\n"
        )
        user = "ci" if name == "ci" else "team"
        (home / ".netrc").write_text((nginx.folder / f"netrc.{user}").read_text())
        self.signer = f"{name}@example.com {(home / 'key.pub').read_text()}"
        self.env = {
            "HOME": str(home),
            "GIT_CONFIG_GLOBAL": str(home / "gitconfig"),
            "CI": str(name == "ci").lower(),
            "LOG": str(place / "log"),  # a variable that the command names has to be the same
        }
        self.repo = Repo(home / "project")
        argv = ["git", "clone", "-q", str(origin), str(self.repo.path)]
        subprocess.run(argv, env={**os.environ, **self.env}, check=True, capture_output=True)

    def git(self, *args: str) -> None:
        done = self.repo.ask("git", *args, env=self.env)
        assert done.returncode == 0, done.stderr

    def run(self) -> tuple[int, str]:
        """Run the gates; return how many did run, and what was said."""
        log = Path(self.env["LOG"])
        log.unlink(missing_ok=True)
        done = self.repo.gitgates("run", "--all-files", env=self.env)
        text = (done.stdout + done.stderr).decode()
        assert done.returncode == 0, text
        return len(log.read_text().splitlines()) if log.exists() else 0, text


@pytest.mark.in_ci
def test_what_ci_has_proved_nobody_runs_again(nginx: Nginx, tmp_path: Path) -> None:
    origin = tmp_path / "origin.git"
    subprocess.run(["git", "init", "-q", "--bare", "-b", "main", origin], check=True)
    ci = Machine(nginx, tmp_path, "ci", origin)
    names = [f"g{number}" for number in range(GATES)]
    config = CONFIG.format(nginx=nginx, names=", ".join(f'"{name}"' for name in names))
    ci.repo.config("".join(GATE.format(name=name) for name in names) + config)
    ci.repo.write("signers", ci.signer)
    ci.git("add", "-A")
    ci.git("commit", "-qm", "one")
    ci.git("push", "-q", "origin", "HEAD:main")
    ci.git("fetch", "-q")
    ci.git("remote", "set-head", "origin", "-a")

    assert ci.run()[0] == GATES
    assert len(nginx.files()) == GATES
    reader = Machine(nginx, tmp_path, "reader", origin)
    ran, text = reader.run()
    assert ran == 0, text
    assert text.count("ci@example.com") == GATES

    nginx.process.terminate()
    nginx.process.wait()
    late = Machine(nginx, tmp_path, "late", origin)
    ran, text = late.run()
    assert ran == GATES
    assert f"cache {nginx.url}: GET: connection refused" in text
