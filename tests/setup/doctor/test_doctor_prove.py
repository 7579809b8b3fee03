"""`doctor --prove`: what is installed is run, and has to block where a gate fails."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from conftest import Repo
from session_support import MEMORY

from gitgates.cli import main
from gitgates.setup.doctor import prove as proofs

pytestmark = pytest.mark.slow  # each proof makes a repository, and starts hosts in it
thorough = pytest.mark.thorough

PROJECT = ".claude/settings.json"
GATE = '[gates.g]\ncommand = "true"\n'
OURS = """\
- repo: local
  hooks:
  - {id: gitgates-pre-commit, name: x, language: system, entry: gitgates pre-commit-hook pre-commit}
"""
COMMIT = f'{GATE}[hooks.pre-commit]\ngates = ["g"]\n'
STOP = f'{GATE}[hooks.Stop]\ngates = ["g"]\n'
SYSTEM = "/usr/local/bin:/usr/bin:/bin"


@pytest.fixture(autouse=True)
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The real gitgates, as it stands here, in the PATH."""
    path = tmp_path / "bin/gitgates"
    path.parent.mkdir()
    source = Path(__file__).resolve().parents[3]
    path.write_text(
        f"#!/bin/sh\nPYTHONPATH='{source}' exec '{sys.executable}' -S -m gitgates \"$@\"\n"
    )
    path.chmod(0o755)
    monkeypatch.setenv("PATH", f"{path.parent}:{SYSTEM}")
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)
    return path


def answers(program: Path, script: str) -> None:
    program.write_text(f"#!/bin/sh\n{script}\n")


def prove(repo: Repo) -> list[tuple[str, str, str]]:
    done = repo.gitgates("doctor", "--prove", "--format", "json")
    assert done.stderr == b""
    found = json.loads(done.stdout)["findings"]
    return [(f["severity"], f["where"], f["what"]) for f in found if f["check"] == "proof"]


def install(repo: Repo, config: str, *args: str) -> None:
    repo.config(config)
    done = repo.gitgates("install-hooks", *args)
    assert done.returncode == 0, done.stderr


def everything(path: Path) -> dict[str, bytes]:
    return {str(p): p.read_bytes() for p in sorted(path.rglob("*")) if p.is_file()}


@pytest.mark.nightly
def test_each_installed_host_is_proved_and_nothing_is_changed(repo: Repo) -> None:
    install(repo, COMMIT + '[hooks.Stop]\ngates = ["g"]\n')
    install(repo, COMMIT + '[hooks.Stop]\ngates = ["g"]\n', "--agent", "claude")
    repo.write("work in progress", "mine")
    before = everything(repo.path)
    assert prove(repo) == [
        ("ok", ".git/hooks/pre-commit", "proved: a commit whose gate fails is refused"),
        ("ok", PROJECT, "proved: Stop is blocked if a gate fails"),
    ]
    assert everything(repo.path) == before
    done = repo.gitgates("doctor", "--prove")
    assert done.returncode == 0
    assert b"ok       .claude/settings.json: proved: Stop is blocked" in done.stdout


def test_nothing_is_installed(repo: Repo) -> None:
    repo.config(COMMIT)
    ((severity, _where, what),) = prove(repo)
    assert severity == "note"
    assert what.endswith("is installed: nothing to prove")


@pytest.mark.samples(1)
@pytest.mark.parametrize(("hook", "verb"), [("pre-push", "push"), ("pre-commit", "commit")])
def test_another_manager_runs_the_gates(repo: Repo, hook: str, verb: str) -> None:
    repo.config(COMMIT.replace("pre-commit", hook))
    repo.write("lefthook.yml", f"{hook}: {{jobs: [{{run: gitgates run {hook}}}]}}\n")
    ((severity, where, what),) = prove(repo)
    assert (severity, where) == ("note", "lefthook.yml")
    assert what.startswith("lefthook is not tested")
    advice = repo.gitgates("doctor", "--prove").stdout
    assert f"To test it: {verb} while a gate fails\n".encode() in advice


def test_without_being_asked_it_proves_nothing(repo: Repo) -> None:
    install(repo, COMMIT)
    assert b"proved" not in repo.gitgates("doctor").stdout


# Git


def test_a_push(repo: Repo) -> None:
    install(repo, f'{GATE}[hooks.pre-push]\ngates = ["g"]\n')
    assert prove(repo) == [
        ("ok", ".git/hooks/pre-push", "proved: a push whose gate fails is refused")
    ]


@pytest.mark.samples(1)
@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("exit 0", "a commit whose gate fails goes through"),
        ("echo no >&2; exit 1", "a commit whose gates pass is refused: no"),
        (
            "[ -e ../passes ] || { echo no >&2; exit 1; }; exit 0",
            "a commit is refused, but not for its gate: no",
        ),
    ],
)
def test_a_shim_that_only_looks_wired(repo: Repo, line: str, what: str) -> None:
    install(repo, COMMIT)
    shim = repo.path / ".git/hooks/pre-commit"
    head, mark, rest = shim.read_text().split("\n", 2)
    shim.write_text(f"{head}\n{mark}\n{line}\n{rest}")
    assert prove(repo) == [("problem", ".git/hooks/pre-commit", what)]


def test_a_hook_that_was_there_before(repo: Repo) -> None:
    hook = repo.write(".git/hooks/pre-commit", '#!/bin/sh -e\n. "$(dirname "$0")/h"\n')
    hook.chmod(0o755)
    install(repo, COMMIT)
    where = ".git/hooks/pre-commit.before-gitgates"
    proved = "proved: it runs under its own name, and its refusal counts"
    assert prove(repo)[1:] == [("ok", where, proved)]


@thorough
def test_a_hook_that_was_there_before_and_runs_under_another_name(repo: Repo) -> None:
    hook = repo.write(".git/hooks/pre-commit", '#!/bin/sh -e\n. "$(dirname "$0")/h"\n')
    hook.chmod(0o755)
    install(repo, COMMIT)
    shim = repo.path / ".git/hooks/pre-commit"
    head, mark, rest = shim.read_text().split("\n", 2)
    line = '[ ! -x "$0.before-gitgates" ] || "$0.before-gitgates" || exit 1'
    shim.write_text(f"{head}\n{mark}\n{line}\n{rest}")
    ((severity, _where, what),) = prove(repo)[1:]
    assert (severity, what[:33]) == (
        "problem",
        "the previous hook has no effect: ",
    )


def test_a_persons_own_settings_and_hooks_of_git_do_not_matter(repo: Repo, tmp_path: Path) -> None:
    install(repo, COMMIT)
    repo.git("config", "--global", "commit.gpgSign", "true")
    repo.git("config", "--global", "gpg.program", "false")
    for name in ("commit-msg", "post-commit"):
        hook = tmp_path / "template/hooks" / name
        hook.parent.mkdir(parents=True, exist_ok=True)
        hook.write_text(f"#!/bin/sh\ntouch '{tmp_path}/ran'; exit 1\n")
        hook.chmod(0o755)
    repo.git("config", "--global", "init.templateDir", str(tmp_path / "template"))
    assert [one[0] for one in prove(repo)] == ["ok"]
    assert not (tmp_path / "ran").exists()


@thorough
def test_a_push_that_a_person_would_sign(repo: Repo) -> None:
    install(repo, f'{GATE}[hooks.pre-push]\ngates = ["g"]\n')
    repo.git("config", "--global", "push.gpgSign", "true")
    assert [one[0] for one in prove(repo)] == ["ok"]


def test_without_a_repository_to_try_in_the_rest_is_told(repo: Repo, program: Path) -> None:
    install(repo, COMMIT)
    git = program.parent / "git"
    git.write_text(f'#!/bin/sh\n[ "$1" = init ] && exit 1\nexec {shutil.which("git")} "$@"\n')
    git.chmod(0o755)
    what = "cannot create a repository to test in: exit status 1"
    assert prove(repo) == [("problem", str(repo.path), what)]


def test_a_hook_as_the_framework_writes_it(repo: Repo) -> None:
    repo.config(COMMIT)
    entry = (
        "{id: gitgates-pre-commit, name: x, language: system, "
        "entry: gitgates pre-commit-hook pre-commit}"
    )
    repo.write(".pre-commit-config.yaml", f"repos:\n- repo: local\n  hooks:\n  - {entry}\n")
    head = "#!/bin/sh\n# File generated by pre-commit: https://pre-commit.com\n"
    hook = repo.write(".git/hooks/pre-commit", f"{head}exec gitgates pre-commit-hook pre-commit\n")
    hook.chmod(0o755)
    assert prove(repo) == [
        ("ok", ".git/hooks/pre-commit", "proved: a commit whose gate fails is refused")
    ]
    hook.write_text(f"{head}exit 0\n")
    assert prove(repo) == [
        ("problem", ".git/hooks/pre-commit", "a commit whose gate fails goes through")
    ]


@thorough
def test_the_framework(repo: Repo, monkeypatch: pytest.MonkeyPatch, program: Path) -> None:
    monkeypatch.setenv("PATH", f"{program.parent}:{Path(sys.executable).parent}:{SYSTEM}")
    broken = "- repo: https://gone.invalid/x\n  rev: v1\n  hooks:\n  - id: x\n"
    repo.write(".pre-commit-config.yaml", f"repos:\n{broken}{OURS}")
    repo.config(COMMIT)
    assert repo.ask("pre-commit", "install").returncode == 0
    assert prove(repo) == [
        ("ok", ".git/hooks/pre-commit", "proved: a commit whose gate fails is refused")
    ]
    answers(program, "exit 0")
    assert prove(repo) == [
        ("problem", ".git/hooks/pre-commit", "a commit whose gate fails goes through")
    ]


# Claude Code


@pytest.mark.samples(1, "nightly")
@pytest.mark.parametrize(
    "event",
    [
        "PreToolUse",
        "SubagentStop",
        *(pytest.param(event, marks=thorough) for event in ("PostToolUse", "UserPromptSubmit")),
    ],
)
def test_the_event_with_gates_is_tried(
    repo: Repo, event: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))  # on the home's file system
    install(repo, f'{GATE}[hooks.{event}]\ngates = ["g"]\n', "--agent", "claude")
    assert prove(repo) == [("ok", PROJECT, f"proved: {event} is blocked if a gate fails")]
    assert not [*(Path.home() / MEMORY).glob("work-*")], "save points of the throwaway"


@pytest.mark.samples(2)
@pytest.mark.parametrize(
    ("script", "what"),
    [
        ("cat >/dev/null", "Stop goes through although a gate fails: it answers nothing"),
        ("echo fine", "Stop goes through although a gate fails: it answers 'fine'"),
        ("echo oops >&2; exit 1", "Stop goes through although a gate fails: it answers oops"),
        ('echo \'{"decision": "block"}\'', "Stop is blocked although the gates pass"),
        ("exit 2", "Stop is blocked although the gates pass"),
        (
            '[ -e ../passes ] || echo \'{"decision": "block"}\'',
            'Stop is blocked, but not for its gate: it answers \'{"decision": "block"}\'',
        ),
    ],
)
def test_a_command_that_only_looks_wired(repo: Repo, program: Path, script: str, what: str) -> None:
    install(repo, STOP, "--agent", "claude")
    answers(program, script)
    assert prove(repo) == [("problem", PROJECT, what)]


def trap(repo: Repo, path: str) -> Path:
    """Write a program that leaves a mark when it is started; return the mark."""
    mark = repo.path.parent / "started"
    repo.write(path, f"#!/bin/sh\ntouch '{mark}'\n").chmod(0o755)
    return mark


@pytest.mark.samples(1)
@pytest.mark.parametrize("args", [(), ("--prove",)], ids=["looking", "proving"])
def test_nothing_that_a_repository_names_is_started(repo: Repo, args: tuple[str, ...]) -> None:
    install(repo, STOP, "--agent", "claude")
    mark = trap(repo, "evil/gitgates")
    evil = repo.path / "evil"
    settings = json.loads((repo.path / PROJECT).read_text())
    harm = {
        "BROWSER": f"{evil}/gitgates",
        "PYTHONWARNINGS": "all:0:antigravity.x:0:0",
        "BASH_ENV": f"{evil}/gitgates",
        "PATH": f"{evil}:{SYSTEM}",
    }
    repo.write(PROJECT, json.dumps({**settings, "env": harm}))
    done = repo.gitgates("doctor", *args)
    assert done.returncode == 0
    settings["hooks"]["Stop"][0]["hooks"][0]["command"] = f"{evil}/gitgates agent-hook claude"
    repo.write(PROJECT, json.dumps(settings))
    done = repo.gitgates("doctor", *args)
    assert done.returncode == 1
    assert f"its program {evil}/gitgates is not the gitgates of this" in done.stdout.decode()
    assert not mark.exists()


@pytest.mark.parametrize("args", [(), ("--prove",)], ids=["looking", "proving"])
def test_nothing_that_a_file_of_the_worktree_names_is_started(
    repo: Repo, args: tuple[str, ...]
) -> None:
    install(repo, COMMIT)
    mark = trap(repo, "evil")
    shim = (repo.path / ".git/hooks/pre-commit").read_text()
    line = next(line for line in shim.splitlines() if line.startswith("python="))
    repo.write("hooks/pre-commit", shim.replace(line, f"python='{repo.path}/evil'")).chmod(0o755)
    repo.git("config", "core.hooksPath", "hooks")
    said = repo.gitgates("doctor", *args).stdout.decode()
    assert (
        f"hooks/pre-commit: names {repo.path}/evil, which is a file of the repository and not"
        in said
    )
    assert not mark.exists()


@pytest.mark.thorough
def test_an_entry_of_the_framework_that_is_not_ours_is_not_started(
    repo: Repo, monkeypatch: pytest.MonkeyPatch, program: Path
) -> None:
    monkeypatch.setenv("PATH", f"{program.parent}:{Path(sys.executable).parent}:{SYSTEM}")
    repo.config(COMMIT)
    mark = trap(repo, "evil")
    entry = OURS.replace("entry: ", f"entry: {repo.path}/evil ")
    repo.write(".pre-commit-config.yaml", f"repos:\n{entry}")
    assert repo.ask("pre-commit", "install").returncode == 0
    assert [severity for severity, *_ in prove(repo)] == ["ok"]
    assert not mark.exists()


@pytest.mark.samples(2)
@pytest.mark.parametrize(
    "command",
    [
        "gitgates agent-hok claude",
        "gitgate agent-hook claude",
        "gitgates agent-hook claude || true",
        "gitgates agent-hook claude; exit 0",
        "gitgates agent-hook codex",
    ],
)
def test_a_command_that_is_not_as_we_write_it_is_a_problem(repo: Repo, command: str) -> None:
    install(repo, STOP, "--agent", "claude")
    settings = json.loads((repo.path / PROJECT).read_text())
    settings["hooks"]["Stop"][0]["hooks"][0]["command"] = command
    repo.write(PROJECT, json.dumps(settings))
    done = repo.gitgates("doctor", "--prove")
    assert done.returncode == 1
    said = done.stdout.decode()
    assert f"problem  {PROJECT}: does not call gitgates at Stop" in said


@pytest.mark.thorough
def test_what_the_settings_switch_off_is_not_proved(repo: Repo) -> None:
    install(repo, STOP, "--agent", "claude")
    repo.write(".claude/settings.local.json", '{"env": {"GITGATES": "0"}}')
    assert [one[:2] for one in prove(repo)] == [("note", PROJECT)]


@thorough
def test_of_two_settings_the_local_ones_count_more(repo: Repo) -> None:
    install(repo, STOP, "--agent", "claude")
    settings = json.loads((repo.path / PROJECT).read_text())
    repo.write(PROJECT, json.dumps({**settings, "env": {"GITGATES": "1"}}))
    repo.write(".claude/settings.local.json", '{"env": {"GITGATES": "0"}}')
    assert [one[0] for one in prove(repo)] == ["note"]


# As gitgates answers in such a proof; a test starts that itself where it matters.
BLOCKS = """\
[ -e ../passes ] || echo '{"decision": "block", "reason": "gitgates-doctor-proof"}'
"""


@pytest.mark.samples(2)
@pytest.mark.parametrize(
    "more", [{"async": True}, {"timeout": "45"}, {"if": "Bash(git *)"}, {"shell": "powershell"}]
)
def test_what_the_client_would_not_wait_for_is_not_proved(
    repo: Repo, more: dict[str, object], program: Path
) -> None:
    install(repo, STOP, "--agent", "claude")
    answers(program, BLOCKS)
    settings = json.loads((repo.path / PROJECT).read_text())
    settings["hooks"]["Stop"][0]["hooks"][0] |= more
    repo.write(PROJECT, json.dumps(settings))
    doubt = "Stop is blocked if a gate fails, once the problems above are fixed"
    assert prove(repo) == [("note", PROJECT, doubt)]


@thorough
def test_what_the_client_does_not_run_is_not_proved(repo: Repo) -> None:
    install(repo, STOP, "--agent", "claude")
    repo.write(".claude/settings.local.json", '{"disableAllHooks": true}')
    assert [one[0] for one in prove(repo)] == ["note"]


def test_an_event_without_gates_proves_nothing(repo: Repo) -> None:
    install(repo, STOP, "--agent", "claude")
    text = (repo.path / PROJECT).read_text()
    settings = json.loads(text)
    settings["hooks"]["Stop"][0]["hooks"][0]["command"] += " || true"
    repo.write(PROJECT, json.dumps(settings))
    what = "calls gitgates at no event that has gates and can be blocked: nothing to prove"
    assert prove(repo) == [("note", PROJECT, what)]


@pytest.mark.thorough
def test_the_plugin(repo: Repo) -> None:
    repo.config(STOP)
    repo.write(PROJECT, '{"enabledPlugins": {"gitgates@gitgates": true}}')
    assert prove(repo) == [
        ("ok", "plugin gitgates@gitgates", "proved: Stop is blocked if a gate fails")
    ]


def test_events_that_cannot_be_blocked_prove_nothing(repo: Repo) -> None:
    repo.config(STOP)
    hook = {"type": "command", "command": "gitgates agent-hook claude"}
    repo.write(PROJECT, json.dumps({"hooks": {"SessionEnd": [{"hooks": [hook]}]}}))
    assert prove(repo) == [("note", PROJECT, "calls gitgates at no event that can be blocked")]


def doctor_without_programs_in(repo: Repo, *folders: str) -> str:
    """Return what doctor says where these are mounted so that nothing can be started there."""
    mount = "mount --bind {0} {0} && mount -o remount,bind,noexec {0}"
    script = " && ".join((*(mount.format(one) for one in folders), 'exec "$@"'))
    doctor = (sys.executable, "-m", "gitgates", "doctor", "--prove")
    within = ("unshare", "-rm", "sh", "-c", script, "sh")
    if repo.ask(*within, "true").returncode:
        pytest.skip("mounting needs a namespace of one's own, which is refused here")
    done = repo.ask(*within, *doctor)
    return (done.stdout + done.stderr).decode()


@pytest.mark.parametrize("is_mounted", [False, pytest.param(True, marks=thorough)])
def test_no_folder_that_anything_can_be_started_from(
    repo: Repo,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    *,
    is_mounted: bool,
) -> None:
    install(repo, COMMIT)
    if is_mounted:
        folders = [one for one in ("/tmp", "/var/tmp", "/dev/shm") if Path(one).is_dir()]
        said = doctor_without_programs_in(repo, *folders)
    else:
        monkeypatch.setattr(proofs, "_can_start", lambda _script_abs: False)
        monkeypatch.chdir(repo.path)
        done = CliRunner().invoke(main, ["doctor", "--prove"])
        said = done.output + "".join(capfd.readouterr())
    assert "no hook can be tested: programs cannot be started from" in said
    assert "TMPDIR=FOLDER gitgates doctor --prove" in said
    assert "goes through" not in said
