"""`gitgates ci init`, the action and the component: right for their hosts, and run as those do."""

from __future__ import annotations

import functools
import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fastjsonschema
import pytest
import yaml
from ci_support import Ended, GitHub, GitLab, make_wheels
from conftest import SRC, Repo

from gitgates import __version__

CONFIG = """\
[gates.words]
command = "python3 words.py"
files = ["*.txt"]
pass_files = true
failures = "ruff"
[hooks.pre-commit]
gates = ["words"]
[hooks.pre-push]
gates = ["words"]
"""
# A linter that reports as ruff does, and notes that it ran.
WORDS = """\
import os, sys
assert sys.prefix == sys.base_prefix  # it is not the Python that gitgates was installed with
open({runs!r}, "a").write(" ".join(sys.argv[1:]) + "\\n")
bad = 0
for name in sys.argv[1:]:
    for number, line in enumerate(open(name), 1):
        if "bad" in line:
            bad = 1
            print(f"{{name}}:{{number}}:{{line.index('bad') + 1}}: W100 This word is bad")
sys.exit(bad)
"""
GITHUB = ".github/workflows/gitgates.yml"
GITLAB = ".gitlab/gitgates.yml"


@functools.cache
def compiled(schema: str) -> Callable[[Any], Any]:
    published = json.loads((SRC / "tests/schemas" / schema).read_text())
    # By defaults that are filled in, some conditions would hold.
    validate: Callable[[Any], Any] = fastjsonschema.compile(published, use_default=False)
    return validate


def validates(schema: str, document: Any) -> None:
    """Validate by a published schema."""
    compiled(schema)(document)


def workflow_of(text: str) -> Any:
    """Return a workflow; in YAML 1.1, `on` is a boolean."""
    return {"on" if key is True else key: value for key, value in yaml.safe_load(text).items()}


def run_texts(steps: list[dict[str, Any]]) -> dict[str, str]:
    return {step["name"]: step["run"] for step in steps if "run" in step}


# The verb


@pytest.mark.slow
def test_a_workflow_of_github(repo: Repo) -> None:
    repo.config(CONFIG)
    done = repo.gitgates("ci", "init", "github")
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.decode() == (
        f"{GITHUB}: written\nnext: add to {GITHUB} what installs your gates' tools, and commit it\n"
    )
    workflow = workflow_of((repo.path / GITHUB).read_text())
    validates("github-workflow.json", workflow)
    assert workflow["on"]["push"] == {"branches": ["main"]}
    steps = {step.get("name"): step for step in workflow["jobs"]["gates"]["steps"]}
    assert steps["Install gitgates"]["env"] == {"GITGATES_VERSION": __version__}
    assert steps["Run the gates"]["env"]["GATES_HOOK"] == "pre-push"


@pytest.mark.slow
def test_a_pipeline_of_gitlab(repo: Repo) -> None:
    repo.config(CONFIG)
    done = repo.gitgates("ci", "init", "gitlab", "--hook", "pre-commit")
    assert done.returncode == 0
    spec, pipeline = yaml.safe_load_all((repo.path / GITLAB).read_text())
    for document in (spec, pipeline, yaml.safe_load((repo.path / ".gitlab-ci.yml").read_text())):
        validates("gitlab-ci.json", document)
    assert spec["spec"]["inputs"]["hook"]["default"] == "pre-commit"
    assert pipeline["gitgates"]["variables"]["GITGATES_VERSION"] == __version__


@pytest.mark.slow
def test_the_schemas_refuse_what_is_wrong(repo: Repo) -> None:
    repo.config(CONFIG)
    repo.gitgates("ci", "init", "github")
    repo.gitgates("ci", "init", "gitlab")
    workflow = workflow_of((repo.path / GITHUB).read_text())
    del workflow["jobs"]["gates"]["runs-on"]
    _spec, pipeline = yaml.safe_load_all((repo.path / GITLAB).read_text())
    pipeline["gitgates"]["scripts"] = []
    action = yaml.safe_load((SRC / "action.yml").read_text())
    del action["runs"]["using"]
    for schema, document in (
        ("github-workflow.json", workflow),
        ("gitlab-ci.json", pipeline),
        ("github-action.json", action),
    ):
        with pytest.raises(fastjsonschema.JsonSchemaException):
            validates(schema, document)


def test_the_default_branch_and_the_first_hook_with_gates(repo: Repo) -> None:
    repo.config(CONFIG.replace("pre-push", "post-commit"))
    repo.commit_all("first")
    repo.git("update-ref", 'refs/remotes/origin/tr"unk', "HEAD")
    repo.git("symbolic-ref", "refs/remotes/origin/HEAD", 'refs/remotes/origin/tr"unk')
    repo.gitgates("ci", "init", "github")
    workflow = workflow_of((repo.path / GITHUB).read_text())
    assert workflow["on"]["push"] == {"branches": ['tr"unk']}
    env = {step.get("name"): step.get("env") for step in workflow["jobs"]["gates"]["steps"]}
    assert env["Run the gates"]["GATES_HOOK"] == "pre-commit"


@pytest.mark.parametrize(
    ("config", "args", "said"),
    [
        ("", (), "no hook has gates"),
        ("[gates.a]\ncommand = 'true'\n", (), "none of pre-push, pre-commit, manual has gates"),
        (CONFIG, ("--hook", "Stop"), "hook `Stop` has no gates; nothing was written"),
    ],
)
def test_nothing_is_written_that_would_check_nothing(
    repo: Repo, config: str, args: tuple[str, ...], said: str
) -> None:
    if config:
        repo.config(config)
    done = repo.gitgates("ci", "init", "github", *args)
    assert done.returncode == 78
    assert (said in done.stderr.decode()) == bool(config)
    assert not (repo.path / GITHUB).exists()


def test_what_a_person_wrote_stays(repo: Repo) -> None:
    repo.config(CONFIG)
    repo.gitgates("ci", "init", "github")
    again = repo.gitgates("ci", "init", "github")
    assert again.stdout.decode() == f"{GITHUB}: already up to date\n"
    changed = (repo.path / GITHUB).read_text().replace("ubuntu-latest", "ubuntu-24.04")
    (repo.path / GITHUB).write_text(changed)
    refused = repo.gitgates("ci", "init", "github")
    assert refused.returncode == 73
    assert "exists, and differs; nothing was written" in refused.stderr.decode()
    shown = repo.gitgates("ci", "init", "github", "--dry-run").stdout.decode()
    assert "-    runs-on: ubuntu-24.04\n+    runs-on: ubuntu-latest\n" in shown
    assert (repo.path / GITHUB).read_text() == changed


def test_another_workflow_that_runs_the_gates_is_named(repo: Repo) -> None:
    repo.config(CONFIG)
    repo.write(".github/workflows/ci.yml", "# pipx run gitgates run\n")
    repo.write(".github/workflows/docs.yml", "# make docs\n")
    said = repo.gitgates("ci", "init", "github").stdout.decode()
    assert ".github/workflows/ci.yml: mentions gitgates as well" in said
    assert "docs.yml" not in said


def test_a_pipeline_that_is_there_includes_ours(repo: Repo) -> None:
    repo.config(CONFIG)
    theirs = "build:\n  script: make\n"
    (repo.path / ".gitlab-ci.yml").write_text(theirs)
    assert (
        ".gitlab-ci.yml" not in repo.gitgates("ci", "init", "gitlab", "--dry-run").stdout.decode()
    )
    assert not (repo.path / GITLAB).exists()
    said = repo.gitgates("ci", "init", "gitlab").stdout.decode()
    include = f"include:\n  - local: /{GITLAB}\n"
    assert f".gitlab-ci.yml: exists, and was left unchanged. Add to it:\n{include}" in said
    assert (repo.path / ".gitlab-ci.yml").read_text() == theirs
    (repo.path / ".gitlab-ci.yml").write_text(include + theirs)
    assert (
        repo.gitgates("ci", "init", "gitlab").stdout.decode() == f"{GITLAB}: already up to date\n"
    )


# What hosts read in this repository


@pytest.mark.slow
def test_the_action_is_one_and_does_what_the_workflow_does() -> None:
    action = yaml.safe_load((SRC / "action.yml").read_text())
    validates("github-action.json", action)
    assert action["inputs"]["version"]["default"] == __version__
    text = (SRC / "gitgates/setup/ci/github.yml").read_text()
    workflow = workflow_of(re.sub("@[A-Z]+@", '"x"', text))
    assert run_texts(action["runs"]["steps"]) == run_texts(workflow["jobs"]["gates"]["steps"])


@pytest.mark.slow
def test_the_component_is_what_is_written_for_gitlab() -> None:
    component = (SRC / "templates/gitgates.yml").read_text()
    for document in yaml.safe_load_all(component):
        validates("gitlab-ci.json", document)
    written = (SRC / "gitgates/setup/ci/gitlab.yml").read_text()
    written = written.replace("@HOOK@", "pre-push").replace("@VERSION@", f'"{__version__}"')
    assert component.partition("spec:\n")[1:] == written.partition("spec:\n")[1:]


# Their steps, as the hosts run them


class Project:
    """A repository with a bare origin, and a branch in it that is to be merged."""

    def __init__(self, repo: Repo, folder: Path) -> None:
        self.repo, self.runs = repo, folder / "runs"
        self.origin = folder / "origin.git"
        subprocess.run(["git", "init", "-q", "--bare", "-b", "main", self.origin], check=True)
        repo.git("remote", "add", "origin", str(self.origin))
        (repo.path / "words.py").write_text(WORDS.format(runs=str(self.runs)))
        (repo.path / "old.txt").write_text("bad, but nobody touches it\n")
        repo.config(CONFIG)
        self.base = self.push("main", "first")

    def push(self, branch: str, message: str) -> str:
        """Commit all without hooks, push it, and return the commit."""
        self.repo.git("add", "-A")
        self.repo.git("commit", "-q", "--no-verify", "-m", message)
        self.repo.git("push", "-q", "--force", "origin", f"HEAD:{branch}")
        return self.repo.git("rev-parse", "HEAD").strip()

    def take_runs(self) -> list[str]:
        """Return the files that each run of the gate got since the last call."""
        lines = self.runs.read_text().splitlines() if self.runs.exists() else []
        self.runs.unlink(missing_ok=True)
        return lines


@pytest.fixture(scope="session")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheels")
    make_wheels(folder)
    return folder


@pytest.fixture
def project(repo: Repo, tmp_path: Path) -> Project:
    return Project(repo, tmp_path)


@pytest.mark.nightly
def test_the_steps_of_github_from_nothing_to_annotations(
    project: Project, wheels: Path, tmp_path: Path
) -> None:
    repo = project.repo
    repo.gitgates("ci", "init", "github")
    steps = workflow_of((repo.path / GITHUB).read_text())["jobs"]["gates"]["steps"]
    github = GitHub(tmp_path / "github", wheels, project.origin)

    def run(head: str, base: str = project.base) -> Ended:
        contexts = {
            "github.ref": "refs/pull/1/merge",
            "github.sha": head,
            "github.event.pull_request.base.sha": base,
            "github.event.pull_request.head.sha": head,
        }
        return github.run_steps(steps, contexts, head)

    (repo.path / "new.txt").write_text("good\nso bad\n")
    status, said = run(project.push("topic", "a bad word"))
    assert status == 1, said
    assert "::error file=new.txt,line=2,col=4" in said
    assert "old.txt" not in said
    sarif = json.loads((github.work / "gitgates.sarif").read_text())
    [result] = sarif["runs"][0]["results"]
    place = result["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == "new.txt"
    assert place["region"]["startLine"] == 2
    assert "failed: words" in said  # verify, of that commit
    project.take_runs()

    (repo.path / "new.txt").write_text("good\n")
    repo.git("reset", "-q", "--soft", project.base)
    head = project.push("topic", "a good word")
    status, said = run(head)
    assert status == 0, said
    assert project.take_runs() == ["new.txt", "new.txt"]  # the tree, and the commit
    assert "gated" in said

    status, said = run(head)  # the commit is known from the cache
    assert status == 0, said
    assert project.take_runs() == ["new.txt"]
    assert "running words" not in said

    status, said = run(head, base="0" * 40)  # a new branch: all files, and its newest commit
    assert status == 1
    assert "::error file=old.txt,line=1" in said


@pytest.mark.nightly
def test_the_action_in_a_job(project: Project, wheels: Path, tmp_path: Path) -> None:
    action = yaml.safe_load((SRC / "action.yml").read_text())
    check_out = {"uses": "actions/checkout@v7", "with": {"fetch-depth": 0}}
    github = GitHub(tmp_path / "github", wheels, project.origin)
    (project.repo.path / "new.txt").write_text("bad\n")
    head = project.push("topic", "a bad word")
    given = {f"inputs.{name}": each["default"] for name, each in action["inputs"].items()}
    given |= {"inputs.verify": "false", "inputs.sarif": "out.sarif"}
    contexts = {"github.event.before": project.base, "github.sha": head, "github.ref": "topic"}
    ended = github.run_steps([check_out, *action["runs"]["steps"]], {**contexts, **given}, head)
    assert ended.status == 1, ended.output
    assert "::error file=new.txt,line=1" in ended.output
    assert "## Verify" not in ended.output
    assert (github.work / "out.sarif").exists()


@pytest.mark.nightly
def test_the_job_of_gitlab_from_nothing_to_its_reports(
    project: Project, wheels: Path, tmp_path: Path
) -> None:
    repo = project.repo
    repo.gitgates("ci", "init", "gitlab")
    file = (repo.path / GITLAB).read_text()
    gitlab = GitLab(tmp_path / "gitlab", wheels, project.origin)

    def run(head: str) -> Ended:
        return gitlab.run_job(
            file,
            CI_COMMIT_SHA=head,
            CI_COMMIT_BEFORE_SHA="0" * 40,
            CI_MERGE_REQUEST_DIFF_BASE_SHA=project.base,
            CI_COMMIT_REF_SLUG="topic",
            CI_DEFAULT_BRANCH="main",
        )

    (repo.path / "new.txt").write_text("bad\n")
    status, said = run(project.push("topic", "a bad word"))
    assert status == 1, said
    assert 'name="words"' in (gitlab.work / "gates.xml").read_text()
    [found] = json.loads((gitlab.work / "gl-code-quality-report.json").read_text())
    assert found["location"]["path"] == "new.txt"
    assert "failed: words" in said
    project.take_runs()

    (repo.path / "new.txt").write_text("good\n")
    repo.git("reset", "-q", "--soft", project.base)
    head = project.push("topic", "a good word")
    assert run(head).status == 0
    assert project.take_runs() == ["new.txt", "new.txt"]
    status, said = run(head)
    assert (status, project.take_runs()) == (0, ["new.txt"]), said
