"""nginx with TLS and client certificates before a server, as the docs configure it."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
from pathlib import Path

import pytest
from cache_support import make_certificates
from casd_support import free_port, wait_for_port
from conftest import SRC

PAGE = SRC / "docs/how-to/remote-execution.md"
NGINX = shutil.which("nginx") or str(SRC / ".venv/nginx/usr/sbin/nginx")
needs_nginx = pytest.mark.skipif(
    not os.path.exists(NGINX), reason="there is no nginx: make .venv/nginx/ready"
)
TLS = 'ca = "{0}/ca.pem"\ncert = "{0}/client.pem"\nkey = "{0}/client.key"'
WHOLE = """
daemon off;
pid {folder}/pid;
error_log {folder}/error.log;
{user}
events {{}}
http {{
    access_log off;
    {paths}
    {server}
}}
"""


class Nginx:
    """One that listens, until it is killed."""

    def __init__(self, folder: Path, to_port: int, certificate: str = "server") -> None:
        self.folder, self.port = folder, free_port()
        folder.mkdir()
        make_certificates(folder)
        found = re.search(r"```nginx\n(.*?)```", PAGE.read_text(), re.DOTALL)
        assert found
        server = found[1]
        for before, after in (
            ("listen 443", f"listen 127.0.0.1:{self.port}"),
            ("build.example.com", "localhost"),
            ("/etc/ssl/certs/build.pem", f"{folder}/{certificate}.pem"),
            ("/etc/ssl/private/build.key", f"{folder}/{certificate}.key"),
            ("/etc/ssl/certs/team-ca.pem", f"{folder}/ca.pem"),
            ("127.0.0.1:8980", f"127.0.0.1:{to_port}"),
        ):
            assert before in server
            server = server.replace(before, after)
        kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        paths = "".join(f"{kind}_temp_path {folder}/{kind};\n" for kind in kinds)
        user = "" if os.geteuid() else "user root;"
        text = WHOLE.format(folder=folder, paths=paths, server=server, user=user)
        (folder / "nginx.conf").write_text(text)
        argv = [NGINX, "-p", str(folder), "-c", str(folder / "nginx.conf")]
        self.process = subprocess.Popen(argv, start_new_session=True)
        wait_for_port(self.port)
        self.url = f"grpcs://localhost:{self.port}"

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
