"""A cache of verdicts on a real nginx, configured as the docs say: TLS, passwords, DAV."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from cache_support import Said, make_certificates
from conftest import SRC, Repo

from gitgates.features.remote.verdict_cache import Server

NGINX = shutil.which("nginx") or str(SRC / ".venv/nginx/usr/sbin/nginx")
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

pytestmark = pytest.mark.skipif(
    not os.path.exists(NGINX), reason="there is no nginx: make .venv/nginx/ready"
)


class Nginx:
    """nginx with the configuration of the docs, in a folder and on a port of its own."""

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
        try:
            until_s = time.monotonic() + 10
            while not (folder / "pid").exists():
                assert process.poll() is None, process.communicate()[1]
                assert time.monotonic() < until_s
                time.sleep(0.02)
            yield nginx
        finally:
            process.terminate()


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
