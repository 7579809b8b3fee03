"""A repository whose parts have settings of their own: commits, pushes, sessions, and the verbs."""

from __future__ import annotations

import json
import os
from typing import Any

import forked
import pytest
from agent_support import Agent, begin
from conftest import Repo, timeless

from gitgates.config.load import checked, load, read_files
from gitgates.core.errors import ConfigError
from gitgates.git.repo import find_repo
from gitgates.git.settings import settings_in

ROOT = """
members = ["web", "packages/*"]
[gates.secrets]
command = "! grep -rn SECRET *.txt"
files = ["*.txt"]
[hooks.pre-commit]
gates = ["secrets"]
"""
MEMBER = """
root = false
extends = ["../shared.toml"]
[hooks.pre-commit]
gates = ["lint"]
[hooks.Stop]
gates = ["lint"]
"""
SHARED = """
[gates.lint]
command = 'echo "$PWD: $@" >> $OUT/ran; ! grep -n BAD "$@"'
files = ["*.ts"]
pass_files = true
"""
NOT_ROOT = MEMBER.replace("../shared.toml", "../../shared.toml")
FILES = {
    "gitgates.toml": ROOT,
    "shared.toml": SHARED,
    "web/gitgates.toml": MEMBER,
    "web/src/a.ts": "a",
    "packages/ui/gitgates.toml": NOT_ROOT,
    "packages/ui/b.ts": "b",
    "packages/plain/c.ts": "c",
    "d.txt": "d",
}


@pytest.fixture(name="mono")
def _mono(repo: Repo, out: Any) -> Repo:  # noqa: ARG001 - the variable
    for name, text in FILES.items():
        repo.write(name, text)
    repo.commit_all("first")
    repo.shim("pre-commit")
    return repo


def gates(repo: Repo, *args: str) -> dict[str, str]:
    """Run gates; return how each has ended."""
    done = repo.gitgates("run", "--format", "json", *args)
    return {row["name"]: row["status"] for row in json.loads(done.stdout)["results"]}


def commit(repo: Repo, name: str, text: str) -> tuple[int, str]:
    repo.write(name, text)
    repo.git("add", name)
    done = repo.commit()
    return done.returncode, done.stderr.decode()


def hook(repo: Repo) -> tuple[int, str]:
    """Run the hook as git starts it for a commit, but in a fork."""
    env = {**os.environ, "GIT_INDEX_FILE": ".git/index"}
    args = ("git-hook", ".git/hooks/pre-commit", "pre-commit")
    done = forked.run(args, str(repo.path), env, b"", hosts=True)
    return done.returncode, done.stderr.decode()


def test_a_commit_runs_the_gates_of_its_members(mono: Repo, out: Any) -> None:
    status, said = commit(mono, "web/src/a.ts", "fine\n")
    assert status == 0
    assert (out / "ran").read_text() == f"{mono.path}/web: src/a.ts\n"
    assert "web:lint" in said
    status, said = commit(mono, "packages/ui/b.ts", "BAD\n")
    assert status == 1
    assert "blocked by `packages/ui:lint`" in said
    mono.git("reset", "-q", "--hard")
    assert commit(mono, "packages/plain/c.ts", "BAD\n")[0] == 0  # no member


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("web/gitgates.toml", 'gates = ["lint"]', "gates = []"),
        ("shared.toml", "BAD", "bad"),
        ("gitgates.toml", '"web", ', ""),
        ("packages/ui/gitgates.toml", "", None),
    ],
)
def test_an_edit_that_is_not_staged_takes_no_gate_away(
    mono: Repo, name: str, old: str, new: str | None
) -> None:
    where = "packages/ui" if name.startswith("packages") else "web"
    if new is None:
        (mono.path / name).unlink()
    else:
        mono.write(name, FILES[name].replace(old, new))
    mono.write(f"{where}/x.ts", "BAD\n")
    mono.git("add", f"{where}/x.ts")
    status, said = hook(mono)
    assert status == 1
    assert f"blocked by `{where}:lint`" in said


def test_nor_does_one_by_which_no_gate_is_left(mono: Repo) -> None:
    mono.write("gitgates.toml", "")
    (mono.path / "packages/ui/gitgates.toml").unlink()
    status, said = commit(mono, "packages/ui/b.ts", "BAD\n")
    assert (status, "blocked by `packages/ui:lint`" in said) == (1, True)


def test_settings_of_a_commit_are_those_of_its_files(mono: Repo) -> None:
    git = find_repo(str(mono.path), {}).git
    (raw,) = settings_in(git, ["HEAD"])
    assert not isinstance(raw, ConfigError)
    config = checked(raw)
    assert config == load(str(mono.path))
    assert config
    assert {name: text for name, text in raw.items() if text is not None} == {
        name: text for name, text in read_files(str(mono.path)).items() if text is not None
    }
    mono.git("rm", "-rqf", "packages")
    mono.git("commit", "-qnm", "second")
    before, after = (checked(raw) for raw in settings_in(git, ["HEAD~1", "HEAD"]))
    assert before == config
    assert after
    assert [gate.name for gate in after.gates] == ["secrets", "web:lint"]


def test_a_member_in_a_commit_may_have_any_name(mono: Repo) -> None:
    mono.write("packages/a\nb/gitgates.toml", NOT_ROOT)
    mono.commit_all("odd")
    (raw,) = settings_in(find_repo(str(mono.path), {}).git, ["HEAD"])
    assert not isinstance(raw, ConfigError)
    assert checked(raw) == load(str(mono.path))
    assert "packages/a\nb/gitgates.toml" in raw


@pytest.mark.parametrize("name", ["web", "packages/a\nb"])
@pytest.mark.parametrize("target", ["settings.toml", "/elsewhere/gitgates.toml"])
def test_a_link_to_settings_of_a_member_is_refused_in_a_commit(
    mono: Repo, name: str, target: str
) -> None:
    git = find_repo(str(mono.path), {}).git
    mono.write(f"{name}/settings.toml", NOT_ROOT)
    (mono.path / name / "gitgates.toml").unlink(missing_ok=True)
    (mono.path / name / "gitgates.toml").symlink_to(target)
    mono.git("add", ".")
    (raw,) = settings_in(git, [mono.git("write-tree")])
    assert isinstance(raw, ConfigError)
    assert raw.message == f"{name}/gitgates.toml: is a symbolic link, or in a folder that is one"


def test_verify_knows_the_gates_of_members(mono: Repo) -> None:
    base = mono.head()
    assert commit(mono, "web/src/a.ts", "fine\n")[0] == 0
    mono.write("web/src/a.ts", "BAD\n")
    mono.git("add", ".")
    mono.git("commit", "-qnm", "bypassed")
    # What came later takes nothing away from it.
    mono.write("gitgates.toml", 'members = ["packages/*"]\n')
    mono.git("add", ".")
    mono.git("commit", "-qnm", "without")
    done = mono.gitgates("verify", f"{base}..HEAD~1", "--format", "json")
    first, second = json.loads(done.stdout)["commits"]
    assert done.returncode == 1
    assert {first["subject"], second["subject"]} == {"change", "bypassed"}
    text = mono.gitgates("verify", f"{base}..HEAD~1").stdout.decode()
    assert "web:lint" in text


def test_a_part_is_run_alone(mono: Repo) -> None:
    assert gates(mono, "--all-files") == dict.fromkeys(
        ("secrets", "web:lint", "packages/ui:lint"), "passed"
    )
    assert gates(mono, "--all-files", "--directory", "web") == {"web:lint": "passed"}
    assert gates(mono, "--all-files", "--directory", "web/src") == {"web:lint": "passed"}
    assert gates(mono, "--all-files", "--directory", "packages") == {"packages/ui:lint": "passed"}
    assert gates(mono, "--all-files", "--directory", ".").keys() == gates(mono).keys()
    mono.write("web/src/a.ts", "BAD\n")
    assert gates(mono, "--directory", "packages/ui") == {"packages/ui:lint": "skipped"}
    mono.git("add", ".")
    assert gates(mono, "--staged", "--directory", "web") == {"web:lint": "failed"}
    explained = mono.gitgates("explain", "pre-commit", "--directory", "web", "--format", "json")
    (step,) = json.loads(explained.stdout)["gates"]
    assert (step["name"], step["paths"], step["working_dir"]) == (
        *("web:lint", ["web/src/a.ts"], "web"),
    )


def test_a_part_that_cannot_be_run(mono: Repo) -> None:
    for args, said in (
        (("--directory", "nowhere"), "--directory nowhere: no such folder"),
        (("--directory", ".."), "`..` is outside the repository"),
        (("pre-push", "--directory", "web"), "hook `pre-push` has no gates in `web`; nothing was"),
    ):
        done = mono.gitgates("run", *args)
        assert done.returncode in (64, 78)
        assert said in done.stderr.decode()


def test_without_members_a_folder_limits_the_paths(repo: Repo) -> None:
    repo.config(
        "[gates.lint]\ncommand = 'echo \"$@\"'\npass_files = true\nfiles = ['*.ts']\n"
        "[hooks.pre-commit]\ngates = ['lint']\n"
    )
    for name in ("a.ts", "web/b.ts", "website/c.ts"):
        repo.write(name)
    done = repo.gitgates("run", "--verbose", "--directory", "web")
    assert b"| web/b.ts\n" in done.stdout


def test_a_gate_of_a_member_is_proven_on_examples(mono: Repo) -> None:
    mono.write("web/gates/bad.ts", "BAD\n")
    mono.write("web/gates/good.ts", "fine\n")
    examples = "examples = { fail = ['gates/bad.ts'], pass = ['gates/good.ts'] }"
    mono.write("web/gitgates.toml", f"{MEMBER}[gates.lint]\n{examples}\n")
    done = mono.gitgates("test", "web:lint")
    assert done.returncode == 0, done.stdout + done.stderr
    assert b"web/gates/bad.ts" in done.stdout


def test_many_skipped_gates_are_one_line(repo: Repo) -> None:
    names = [f"p{number}" for number in range(7)]
    for name in names:
        text = "root = false\n[gates.g]\ncommand = 'true'\n[hooks.pre-commit]\ngates = ['g']\n"
        repo.write(f"{name}/gitgates.toml", text)
    repo.write("gitgates.toml", "members = ['p*']\n")
    repo.commit_all("first")
    repo.write("p3/a")
    done = repo.gitgates("run")
    assert timeless(done.stdout).splitlines() == [
        "6 gates  skipped      no file matches",
        "p3:g  passed         0.00 s",
        "gitgates pre-commit: 1 gate passed, 6 gates skipped",
    ]
    lines = repo.gitgates("run", "--verbose").stdout.decode().splitlines()
    assert sum("skipped      no file matches" in line for line in lines) == 6


def test_check_lists_the_members(mono: Repo) -> None:
    assert mono.gitgates("check").stdout.decode().splitlines() == [
        "gitgates.toml, shared.toml and 2 more: 3 gates, 2 hooks, no problems",
        "  web: web:lint",
        "  packages/ui: packages/ui:lint",
    ]


# Sessions of an agent


@pytest.fixture(name="agent")
def _agent(mono: Repo) -> Agent:
    mono.git("rm", "-q", "gitgates.toml")
    return begin(mono, ROOT)


def decision(answer: dict[str, Any]) -> str:
    own = answer.get("hookSpecificOutput", {})
    return str(own.get("permissionDecision", answer.get("decision", "")))


def test_the_guard_asks_before_any_of_the_files_is_changed(agent: Agent) -> None:
    for file in ("web/gitgates.toml", "packages/ui/gitgates.toml", "shared.toml"):
        written = {"file_path": str(agent.repo.path / file), "content": "root = false\n"}
        assert "gate_settings" in json.dumps(agent.pre("Write", file, tool_input=written)), file
    # The name of the file, as a command has it, is found in the same way: one of each kind.
    for command in (
        "rm web/gitgates.toml",
        "sed -i s/BAD/x/ shared.toml",
        "echo > packages/ui/gitgates.toml",
    ):
        answer = agent.pre("Bash", "", tool_input={"command": command})
        assert "gate_settings" in json.dumps(answer), command


def test_the_guard_does_not_mind_other_files(agent: Agent) -> None:
    for file in ("packages/plain/x.toml", "web/src/a.ts"):
        assert agent.pre("Write", file) == {}


def test_a_stop_runs_the_gates_of_members(agent: Agent) -> None:
    agent.write("packages/ui/b.ts", "BAD\n")
    answer = agent.send("Stop")
    assert decision(answer) == "block"
    assert "packages/ui:lint" in answer["reason"]
    assert "web:lint" not in answer["reason"]


@pytest.mark.parametrize("file", ["web/gitgates.toml", "shared.toml"])
def test_an_agent_may_repair_what_it_broke(agent: Agent, file: str) -> None:
    with agent.call():
        agent.write(file, "[[[")
    answer = agent.send("Stop")
    assert decision(answer) == "block"
    assert f"{file}: is not valid TOML" in answer["reason"]
    assert decision(agent.pre("Write", file)) == ""


def test_who_has_not_broken_it_is_not_sent_back(agent: Agent) -> None:
    agent.repo.write("shared.toml", "[[[")
    agent.repo.git("add", ".")
    other = Agent(agent.repo, "s2")
    other.start()
    other.prompt()
    other.write("x.ts", "x")
    answer = other.send("Stop")
    assert decision(answer) == ""
    assert "shared.toml: is not valid TOML" in answer["systemMessage"]


def test_removing_a_gate_of_a_member_is_reported(agent: Agent) -> None:
    agent.write("web/gitgates.toml", "root = false\n")
    answer = agent.send("Stop")
    assert "gate `web:lint`" in answer["systemMessage"]
