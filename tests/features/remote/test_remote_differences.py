"""What differs on a server, and that it is either no verdict, or `explain --remote` lists it."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from casd_support import Casd, needs_casd, serving_casd
from conftest import Repo

pytestmark = [pytest.mark.slow, needs_casd]

SYSTEM = "/usr/bin/python3"  # the server's, too
PYTHON = ".venv/bin/python"


@pytest.fixture(name="casd", scope="module")
def _casd(tmp_path_factory: pytest.TempPathFactory) -> object:
    with serving_casd(tmp_path_factory.mktemp("casd") / "server") as casd:
        yield casd


@pytest.fixture(name="project")
def _project(repo: Repo, casd: Casd, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Repo:
    """A package below `src/`, and an environment in which it is installed as editable."""
    monkeypatch.setenv("GITGATES_POOL", str(tmp_path / "pool"))
    if not os.access(SYSTEM, os.X_OK):
        pytest.skip(f"there is no {SYSTEM}")
    subprocess.run([SYSTEM, "-m", "venv", "--without-pip", repo.path / ".venv"], check=True)
    (packages,) = repo.path.glob(".venv/lib/python3.*/site-packages")
    (packages / "mine.pth").write_text(f"{repo.path}/src\n")
    repo.write(".venv/bin/tool", f"#!{repo.path}/{PYTHON}\nprint('tool')\n").chmod(0o755)
    repo.write(".gitignore", ".venv\n")
    repo.write("src/mine.py", "print('mine')\n")
    gates = {
        "scripts": ".venv/bin/tool",
        "editable": f"{PYTHON} -c 'import mine'",
        "works": f"PYTHONPATH=$PWD/src {PYTHON} -c 'import mine'",
        "lists": "git ls-files | xargs -r false; true",
        "home": 'echo "HOME=$HOME"',
    }
    tables = [
        f"[gates.{name}]\ncommand = {json.dumps(command)}\nremote = true\n"
        'ignored_inputs = [".venv"]\n'
        for name, command in gates.items()
    ]
    names = json.dumps([*gates])
    head = f'[remote]\nexecution = "{casd.url}"\n[hooks.manual]\ngates = {names}\n'
    repo.config(head + "".join(tables))
    repo.commit_all("first")
    return repo


def result_of(project: Repo, gate: str, *options: str) -> dict[str, object]:
    done = project.gitgates("run", *options, "--format", "json", gate)
    (result,) = json.loads(done.stdout)["results"]
    return {name: result.get(name, "") for name in ("status", "where", "remote_failure", "output")}


def test_a_virtual_environment_travels(project: Repo, casd: Casd) -> None:
    here, there = result_of(project, "works"), result_of(project, "works", "--remote")
    assert here == {"status": "passed", "where": "", "remote_failure": "", "output": "mine\n"}
    assert there == here | {"where": casd.url}


def test_scripts_that_name_a_folder_do_not_run_there(project: Repo) -> None:
    there = result_of(project, "scripts", "--remote")
    assert (there["status"], there["where"], there["output"]) == ("passed", "", "tool\n")
    assert "command not found there" in str(there["remote_failure"])


def test_what_git_finds_is_not_judged_there(project: Repo) -> None:
    there = result_of(project, "lists", "--remote")
    assert (there["status"], there["where"]) == ("passed", "")
    assert str(there["remote_failure"]).endswith("it runs git, and there is no repository there")


def test_explain_lists_why_a_verdict_differs(project: Repo, casd: Casd) -> None:
    here, there = result_of(project, "editable"), result_of(project, "editable", "--remote")
    assert (here["status"], there["status"], there["where"]) == ("passed", "failed", casd.url)
    assert result_of(project, "home", "--remote")["output"] == "HOME=\n"
    document = json.loads(
        project.gitgates("explain", "--remote", "editable", "--format", "json").stdout
    )
    named = document["names_this_folder"]
    assert ".venv/bin/tool" in named
    assert [path for path in named if path.endswith("site-packages/mine.pth")]
    assert "src/mine.py" not in named
    links = document["links_to_absolute_places"]
    assert [link for link in links if link.startswith(".venv/bin/python") and "/usr/bin/" in link]
    text = project.gitgates("explain", "--remote", "editable").stdout.decode()
    assert "\nfiles with the path of this folder, which differs there:" in text
    assert "\n`PATH`, and the programs in it, are those of the server.\n" in text
    assert "names them: HOME, TERM, LANG\ngit finds no repository there; user, " in text


def test_explain_says_what_keeps_a_gate_here(project: Repo) -> None:
    path = project.path / "pyproject.toml"
    path.write_text(path.read_text().replace("gates.home]", "gates.home]\npass_hook_input = true"))
    text = project.gitgates("explain", "--remote", "home").stdout.decode()
    assert text.endswith("It only runs here: it has `pass_hook_input`.\n")


def test_without_a_server_there_is_no_there(repo: Repo) -> None:
    repo.config('[gates.a]\ncommand = "true"\nremote = true\n[hooks.manual]\ngates = ["a"]\n')
    done = repo.gitgates("run", "--remote", "a")
    assert done.returncode == 64
    assert b"--remote, but no server for gates is configured" in done.stderr
