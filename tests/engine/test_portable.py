"""The keys of passes are the same on any machine with the same tools, and on no other."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from base64 import urlsafe_b64encode
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import pytest
from conftest import Repo
from run_support import Heard, config_of, run_gates

from gitgates.core.types import Event, Gate, Plan, Step
from gitgates.engine.plan import find_hook
from gitgates.engine.portable import definition_sha256, tools_of
from gitgates.git.repo import find_repo
from gitgates.store.proofs import read_all

SCRIPT = "#!/bin/sh\ntrue\n"
GATE = Gate(name="lint", command="lint-it a.txt", reuse=True)
BY_FILE = GATE._replace(
    command=("lint-it",), files=("*.txt",), pass_files=True, reuse="by-file", inputs=("x.toml",)
)
TRUST = {"trust": {"signers": [], "agents": True, "max_age_s": 0.0}, "allowed_signers": ""}


class Machine:
    """A clone, with tools and a home of its own."""

    def __init__(self, place: Path, name: str) -> None:
        self.name, self.home = name, place / f"home/{name}"
        self.repo = Repo.init(place / f"{name}/in/a/folder" / f"clone-of-{name}")
        self.venv = place / f"{name}-environment"
        self.bin = self.home / "tools/bin"
        self.bin.mkdir(parents=True)
        self.program("lint-it", SCRIPT)
        for file in ("a.txt", "b.txt", "x.toml"):
            self.repo.write(file, f"{file}\n")
        self.repo.commit_all("first")

    def program(self, name: str, text: str) -> None:
        path = self.bin / name
        path.write_text(text)
        path.chmod(0o755)

    def environment(self, **env: str) -> dict[str, str]:
        path = os.pathsep.join((str(self.bin), str(self.venv / "bin"), os.environ["PATH"]))
        return {**os.environ, "PATH": path, "HOME": str(self.home), **env}

    def keys(self, gate: Gate = GATE, **env: str) -> str:
        """Run a gate; return the keys of its pass."""
        root_abs = str(self.repo.path)
        config = config_of((gate,), "manual", 1)._replace(tables={"proof": TRUST})
        paths = ("a.txt", "b.txt")
        event = Event(host="manual", name="manual", root_abs=root_abs, paths=paths)
        environment = {**self.environment(**env), "GITGATES_REUSE": "1"}
        heard = Heard()
        decision = run_gates(config, event, heard, env=environment)
        (result,) = (visit.result for visit in decision.visits)
        assert (result.status, heard.texts) == ("passed", [])
        if not result.reused:
            rows = read_all(f"{root_abs}/.git/gitgates")
            recorded = [row.shared for row in rows if row.gate == gate.name]
            assert gate.reuse == "by-file" or result.shared in recorded
        return result.shared

    def tool(self, gate: Gate = GATE, **env: str) -> str:
        """Return the digest of the tools of a gate."""
        repo = find_repo(str(self.repo.path), self.environment(**env))
        config = config_of((gate,), "manual")
        event = Event(host="manual", name="manual", root_abs=repo.root_abs)
        hook = find_hook(config, "manual")
        assert hook
        plan = Plan(event=event, hook=hook, listed=(gate.name,), steps=(Step(gate=gate),))
        return tools_of(plan, repo).get(gate.name, "")


@pytest.fixture(name="pair")
def _pair(tmp_path: Path) -> tuple[Machine, Machine]:
    return Machine(tmp_path, "first"), Machine(tmp_path, "second")


GATES = {
    "whole": GATE,
    "by file": BY_FILE,
    "a folder": GATE._replace(command='lint-it "$PWD" && lint-it "$HOME"'),
    "reads": GATE._replace(reads=("~/.lintrc", "../lint.toml")),
    "a program of the repository": GATE._replace(command="./lint-here"),
}


def test_the_same_on_two_machines(pair: tuple[Machine, Machine]) -> None:
    for machine in pair:
        machine.repo.write("lint-here", SCRIPT).chmod(0o755)
        (machine.home / ".lintrc").write_text("rules")
        (machine.repo.path / "../lint.toml").write_text("rules")
    for name, gate in GATES.items():
        first, second = (machine.keys(gate, PWD=str(machine.repo.path)) for machine in pair)
        assert first == second, name
        assert len(first.split()) == (3 if gate is BY_FILE else 1)
        assert all(len(key) == 64 for key in first.split())
        assert pair[0].tool(gate) == pair[1].tool(gate) != "", name


def test_a_pass_that_is_reused_here_has_the_same_keys(pair: tuple[Machine, Machine]) -> None:
    for gate in (GATE, BY_FILE):
        assert pair[0].keys(gate) == pair[0].keys(gate)


def _edit(name: str, text: str) -> Callable[[Machine], object]:
    return lambda machine: (machine.repo.path / name).write_text(text)


OTHERS: dict[str, Callable[[Machine], object]] = {
    "content": _edit("a.txt", "other\n"),
    "a new file": _edit("new", ""),
    "an executable file": lambda machine: (machine.repo.path / "a.txt").chmod(0o755),
    "a link": lambda machine: (machine.repo.path / "c").symlink_to("a.txt"),
    "line endings": _edit("a.txt", "a.txt\r\n"),
    "what git leaves out": _edit(".git/info/exclude", "*.tmp\n"),
    "a program": lambda machine: machine.program("lint-it", SCRIPT + "#\n"),
    "its interpreter": lambda machine: machine.program("lint-it", "#!/bin/bash\ntrue\n"),
    "a file that it reads": lambda machine: (machine.home / ".lintrc").write_text("x"),
}


def test_another_machine(pair: tuple[Machine, Machine]) -> None:
    gate = GATE._replace(reads=("~/.lintrc",))
    seen = {pair[0].keys(gate)}
    for name, change in OTHERS.items():
        change(pair[1])
        keys = pair[1].keys(gate)
        assert keys not in seen, name
        seen.add(keys)


DEFINITIONS = {
    "name": GATE._replace(name="other"),
    "option": GATE._replace(command="lint-it a.txt --fast"),
    "list": GATE._replace(command=("lint-it", "a.txt")),
    "variable": GATE._replace(env=(("A", "b"),)),
    "folder": GATE._replace(working_dir="sub"),
    "writes": GATE._replace(writes=True),
    "index": GATE._replace(git_env="clean"),
    "files": GATE._replace(pass_files=True, files=("*.txt",)),
}


def test_another_definition(pair: tuple[Machine, Machine]) -> None:
    first, second = pair
    for machine in pair:
        machine.repo.write("sub/lint-it", SCRIPT).chmod(0o755)
    expected = first.keys()
    for name, other in DEFINITIONS.items():
        assert second.keys(other) != expected, name
        is_told_by_name = other.name != GATE.name
        assert is_told_by_name or definition_sha256(other) != definition_sha256(GATE), name


def test_variables(pair: tuple[Machine, Machine]) -> None:
    gate = GATE._replace(env_inputs=("MODE", "PLACE"))
    first, second = pair
    expected = first.keys(gate, PLACE=f"{first.repo.path}/x")
    assert second.keys(gate, PLACE=f"{second.repo.path}/x") == expected
    assert second.keys(gate, PLACE=f"{second.repo.path}x") != expected
    assert second.keys(gate, PLACE=f"{second.repo.path}/x", MODE="1") != expected
    assert second.keys(gate, PLACE=f"{second.repo.path}/x", PYTEST_ADDOPTS="-x") != expected


def test_packages_from_elsewhere_have_no_key(pair: tuple[Machine, Machine]) -> None:
    assert pair[0].keys(PYTHONPATH="/opt/somewhere") == ""
    assert pair[0].keys(PYTHONPATH=f"{pair[0].repo.path}/src") == pair[1].keys(
        PYTHONPATH=f"{pair[1].repo.path}/src"
    )


def wheel(folder: Path, version: str, text: str = "", *, hashed: bool = True) -> Path:
    """Make a wheel with a module, a program that starts it, and a program as it is."""
    info = f"checker-{version}.dist-info"
    files = {
        "checker.py": f"def main():\n    return 0\n{text}",
        f"checker-{version}.data/scripts/checker-raw": "\x7fELF, or so\n",
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: checker\nVersion: {version}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/entry_points.txt": "[console_scripts]\nchecker = checker:main\n",
    }
    names = "".join(
        f"{name},{hash_of(content) if hashed else ''},{len(content) if hashed else ''}\n"
        for name, content in files.items()
    )
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"checker-{version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
        archive.writestr(f"{info}/RECORD", f"{names}{info}/RECORD,,\n")
    return path


def hash_of(content: str) -> str:
    digest = urlsafe_b64encode(sha256(content.encode()).digest()).rstrip(b"=")
    return f"sha256={digest.decode()}"


def make_venv(machine: Machine) -> None:
    """Make what `python -m venv --without-pip` does, as far as it matters here."""
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    python = Path(sys.executable).resolve()
    (machine.venv / f"lib/python{version}/site-packages").mkdir(parents=True)
    (machine.venv / "bin").mkdir()
    (machine.venv / "bin/python").symlink_to(python)
    (machine.venv / "pyvenv.cfg").write_text(f"home = {python.parent}\n")


def site_of(machine: Machine) -> Path:
    return next((machine.venv / "lib").glob("python*/site-packages"))


def unpack(machine: Machine, wheel: Path) -> None:
    """Install a wheel as pip does, which takes a second."""
    site, python = site_of(machine), machine.venv / "bin/python"
    for old in site.glob("checker-*"):
        shutil.rmtree(old)
    shutil.rmtree(site / "__pycache__", ignore_errors=True)
    with zipfile.ZipFile(wheel) as archive:
        files = {name: archive.read(name).decode() for name in archive.namelist()}
    data = next(name for name in files if name.endswith("/checker-raw"))
    record = next(name for name in files if name.endswith("/RECORD"))
    info, lines = record.removesuffix("RECORD"), files.pop(record).splitlines()
    files["../../../bin/checker-raw"] = files.pop(data)
    start = f"#!{python}\nimport sys\nfrom checker import main\nsys.exit(main())\n"
    own = {
        "../../../bin/checker": start,
        f"{info}INSTALLER": "pip\n",
        f"{info}direct_url.json": f'{{"archive_info": {{}}, "url": "{wheel.as_uri()}"}}',
    }
    lines = [line.replace(data, "../../../bin/checker-raw") for line in lines]
    lines += [f"{name},{hash_of(text)},{len(text)}" for name, text in own.items()]
    lines += ["__pycache__/checker.cpython-311.pyc,,"]
    for name, text in {**files, **own, record: "\n".join((*lines, ""))}.items():
        (site / name).parent.mkdir(exist_ok=True)
        (site / name).write_text(text)
    for name in ("checker", "checker-raw"):
        (machine.venv / "bin" / name).chmod(0o755)


def install(machine: Machine, wheel: Path) -> None:
    pip = [sys.executable, "-m", "pip", "--python", str(machine.venv), "install", "-q"]
    quiet = ("--no-index", "--no-deps", "--force-reinstall", "--disable-pip-version-check")
    subprocess.run([*pip, *quiet, str(wheel)], check=True)


@pytest.mark.slow
@pytest.mark.samples(1)
@pytest.mark.parametrize(
    ("install", "folder"), [(unpack, ""), (install, ""), (install, "long-" * 25)]
)
def test_virtual_environments(
    pair: tuple[Machine, Machine],
    tmp_path: Path,
    install: Callable[[Machine, Path], None],
    folder: str,
) -> None:
    def made(name: str, version: str = "1.0", text: str = "") -> Path:
        return wheel(tmp_path / name, version, text, hashed=not folder)

    first, second = pair
    for machine in pair:
        machine.venv = tmp_path / folder / machine.venv.name
        make_venv(machine)
        install(machine, made(machine.name))
    # From so long a path, pip starts Python by a shell.
    assert (b"exec" in (second.venv / "bin/checker").read_bytes()) is bool(folder)
    gates = {
        command: GATE._replace(command=command)
        for command in ("checker", "python -m checker", "python a.py")
    }

    def keys(machine: Machine, gate: Gate) -> str:
        return machine.keys(gate, VIRTUAL_ENV=str(machine.venv))

    for machine in pair:
        machine.repo.write("a.py")
    expected = {name: keys(first, gate) for name, gate in gates.items()}
    assert all(expected.values())
    assert {name: keys(second, gate) for name, gate in gates.items()} == expected
    tool = first.tool(gates["checker"], VIRTUAL_ENV=str(first.venv))
    assert second.tool(gates["checker"], VIRTUAL_ENV=str(second.venv)) == tool
    for version, text in (("1.0", "# patched\n"), ("1.1", "")):
        install(second, made("other", version, text))
        for name, gate in gates.items():
            assert keys(second, gate) not in ("", expected[name])
        assert second.tool(gates["checker"], VIRTUAL_ENV=str(second.venv)) != tool
    install(second, made("again"))
    assert {name: keys(second, gate) for name, gate in gates.items()} == expected


@pytest.mark.slow
def test_editable_packages(pair: tuple[Machine, Machine], tmp_path: Path) -> None:
    for machine in pair:
        make_venv(machine)
        unpack(machine, wheel(tmp_path / machine.name, "1.0"))
        site = site_of(machine)
        (site / "project.pth").write_text(f"{machine.repo.path}/src\n")
        # As setuptools installs a package as editable.
        finder = f"MAPPING = {{'project': '{machine.repo.path}/src/project'}}\n"
        (site / "__editable___project_finder.py").write_text(finder)
        (site / "project-1.dist-info").mkdir()
        record = f"__editable___project_finder.py,{hash_of(finder)},{len(finder)}\n"
        (site / "project-1.dist-info/RECORD").write_text(record)
    gate = GATE._replace(command="checker")
    assert pair[0].keys(gate) == pair[1].keys(gate) != ""
    (site / "project.pth").write_text(f"{tmp_path}/another/src\n")
    assert pair[1].keys(gate) == ""  # nothing tells what is there
    for text in ("../../../../elsewhere\n", "import sys; sys.path.append('/opt/x')\n"):
        (site / "project.pth").write_text(text)
        assert pair[1].keys(gate) == ""


EDITABLE = {
    "a folder with a space": ("project.pth", "{elsewhere}/my code/src\n"),
    "by a module that is imported": ("project.pth", "import _project_editable\n"),
    "as a namespace": (
        "__editable___project_finder.py",
        "NAMESPACES = {'a': ['{elsewhere}/src']}\n",
    ),
}


@pytest.mark.samples(2)
@pytest.mark.parametrize(("name", "text"), EDITABLE.values(), ids=EDITABLE)
def test_editable_packages_from_elsewhere(
    pair: tuple[Machine, Machine], tmp_path: Path, name: str, text: str
) -> None:
    """The same folder on both machines, in which there may be other files."""
    machine = pair[0]
    make_venv(machine)
    unpack(machine, wheel(tmp_path / machine.name, "1.0"))
    gate = GATE._replace(command="checker")
    assert machine.keys(gate)
    site = site_of(machine)
    (site / name).write_text(text.replace("{elsewhere}", str(tmp_path / "elsewhere")))
    info = site / "project-1.dist-info"
    info.mkdir()
    url = f'{{"dir_info": {{"editable": true}}, "url": "file://{tmp_path}/elsewhere"}}'
    (info / "direct_url.json").write_text(url)
    (info / "RECORD").write_text(f"{name},,\nproject-1.dist-info/direct_url.json,,\n")
    machine.repo.write("new")
    assert (machine.keys(gate), machine.tool(gate)) == ("", "")
    (site / name).write_text("import _project_editable\n")
    inside = url.replace(f"{tmp_path}/elsewhere", str(machine.repo.path))
    (info / "direct_url.json").write_text(inside)
    (info / "RECORD").write_text(f"{name},,\nproject-1.dist-info/direct_url.json,,\n\n")
    assert machine.tool(gate)


def test_scripts_that_load_what_is_installed_for_all(pair: tuple[Machine, Machine]) -> None:
    """The script of a package is the same in many of its versions."""
    gate = GATE._replace(command="true lint-it")
    assert pair[0].tool(gate)
    for interpreter in ("/usr/bin/env ruby", "/usr/bin/node", "/usr/bin/perl -w"):
        pair[0].program("lint-it", f"#!{interpreter}\nload\n")
        assert pair[0].tool(gate) == "", interpreter


def test_hooks_that_a_person_skips_are_not_proved(pair: tuple[Machine, Machine]) -> None:
    for machine in pair:
        for name in ("pre-commit", "prek"):
            machine.program(name, SCRIPT)
    for command in ("pre-commit run --all-files || true", ("prek", "run")):
        gate = GATE._replace(command=command)
        expected = pair[0].tool(gate)
        assert pair[1].tool(gate) == expected != pair[1].tool(gate, SKIP="mypy")
        assert expected != pair[1].tool(gate, PREK_SKIP="mypy")
    assert pair[0].tool() == pair[1].tool(SKIP="mypy")  # its own hooks are no matter of others


def test_a_folder_with_a_link_to_another(pair: tuple[Machine, Machine]) -> None:
    gate = GATE._replace(reads=("~/rules",))
    for machine in pair:
        (machine.home / "rules/old").mkdir(parents=True)
        (machine.home / "rules/new").mkdir()
        (machine.home / "rules/now").symlink_to("old")
    expected = pair[0].keys(gate)
    assert pair[1].keys(gate) == expected
    (pair[1].home / "rules/now").unlink()
    (pair[1].home / "rules/now").symlink_to("new")
    assert pair[1].keys(gate) != expected


def test_what_a_gate_declares_is_a_part_of_its_tools(pair: tuple[Machine, Machine]) -> None:
    first, second = pair
    gate = GATE._replace(env_inputs=("MODE",), reads=("~/.lintrc",))
    expected = first.tool(gate)
    assert second.tool(gate, VIRTUAL_ENV="/other") == expected
    assert second.tool(gate, MAKEFLAGS="w") == expected  # as in a recipe of make
    assert second.tool(gate, MODE="1") != expected
    assert second.tool(gate, PYTEST_ADDOPTS="-x") != expected
    (second.home / ".lintrc").write_text("x")
    assert second.tool(gate) != expected


def test_a_variable_with_an_environment(pair: tuple[Machine, Machine], tmp_path: Path) -> None:
    """What is in it is told of VIRTUAL_ENV only."""
    gate = GATE._replace(env_inputs=("TOOLS",))
    keys = set()
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "pyvenv.cfg").write_text("")
        keys.add(pair[0].tool(gate, TOOLS=str(tmp_path / name)))
    assert len(keys) == 2


def test_packages_that_npm_has_linked(pair: tuple[Machine, Machine]) -> None:
    text = '{"packages": {"node_modules/a": {"resolved": "../%s/a", "link": true}}}'
    for inside in (True, False):
        lock = text % (pair[0].repo.path.name if inside else "elsewhere")
        pair[0].repo.write("node_modules/.package-lock.json", lock)
        assert bool(pair[0].tool()) is inside
