"""The guard: each rule by several ways to write it, and what only looks like it."""

from __future__ import annotations

import os
import re
from typing import Any

import pytest
from agent_support import Agent, begin
from conftest import Repo

from gitgates.approval import ACTIONS
from gitgates.policies import shell_syntax
from gitgates.policies.guard import RULES
from gitgates.policies.guard_rules import PERSONS
from gitgates.types import Guard

CONFIG = """\
[intents]
[gates.check]
command = "true"
[hooks.Stop]
gates = ["check"]
"""
EDITED = """\
[project]
name = "x"

[tool.gitgates.gates.check]
command = "true"
[tool.gitgates.hooks.Stop]
gates = ["check"]
"""
FOUND = re.compile(r"gitgates: the guard, rule `(\w+)`: ")
MESSAGE = """git commit -F - <<'EOF'
Don't use --no-verify, nor HUSKY=0 or core.hooksPath

It's `rm -rf .git/hooks` that is wrong: > .git/config
EOF"""
TYPICAL = f'git add a && git commit -m "$(cat {MESSAGE.partition("- ")[2]}\n)" && git status'
# rule → what it finds, and what it does not
SHELL: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "no_verify": (
        (
            "git commit --no-verify -m x",
            "git commit -nm x",
            "git commit -anm x",
            "git commit --no-veri",
            "git -C . -c a.b=c commit -m x -n",
            "cd sub && git 'com'\"mit\" --no-\\\nverify",
            "git push --no-verify || git merge --no-verify x",
            "git am -n x.patch",
            "git rebase --no-verify main",
            "git rebase -x 'git commit --amend --no-edit -n' main",
            "git submodule foreach 'git commit -n -m x'",
            "env -i PATH=/bin git commit -n",
            "env -iu X git commit -n",
            "timeout --signal KILL 5 sudo -uroot git commit -n",
            "bash -c 'git commit -n -m \"x y\"'",
            "echo a | xargs git commit --no-verify -m",
            "echo $(git push --no-verify)",
            "echo `git commit -n`",
            "sh <<'X'\ngit commit --no-verify\nX",
            "F=--no-verify; git commit $F",
            "f() { git commit -n; }; f",
            "sudo timeout -k 5 9 nohup git commit -n",
            "eval 'git commit' -n",
            "(git commit -n) &",
            "git -c alias.x='commit -n' x",
            "git config alias.yolo '!git push --no-verify'",
            "git sneaky -m x",
            "git ci -n",
            "git commit -m x > out -n",
        ),
        (
            'echo "--no-verify"',
            "echo git commit --no-verify",
            "git commit -m --no-verify",
            "git commit -am -n",
            "git commit -m 'no --no-verify here' -- -n",
            "git commit -F -n --message -n -C -n",
            MESSAGE,
            TYPICAL,
            "grep -rn -- --no-verify .",
            "git log -n 3 --grep=commit",
            "git rebase -x 'echo --no-verify' main",
            "git push -n",
            "git merge -n x",
            "git commit -uno -m x",
            "git commit -Snobody -m x",
            "git commit --no-edit --no-status --amend",
            "git ci -m x",
            "# git commit -n",
            "printf '%s' 'git commit -n' > notes.txt",
        ),
    ),
    "hooks_path": (
        (
            "git -c core.hooksPath=/dev/null commit -m x",
            "git config core.hooksPath /tmp/x",
            "git config --global core.hookspath ''",
            "git config --local --unset core.hooksPath",
            "git config set core.hooksPath x",
            "git config --remove-section core",
            "git --config-env=core.hooksPath=X commit",
            "GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=core.hooksPath GIT_CONFIG_VALUE_0=/x git commit",
            "export GIT_CONFIG_PARAMETERS=\"'core.hooksPath=/x'\"; git commit",
            "GIT_CONFIG_GLOBAL=/tmp/x git commit",
        ),
        (
            "git config core.hooksPath",
            "git config --get core.hooksPath",
            "git config get core.hooksPath",
            "git config --show-origin --get-all core.hookspath",
            "git config user.name core.hooksPath",
            "git -c user.name=core.hooksPath commit -m x",
            "GIT_CONFIG_GLOBAL=/dev/null git log",
            "GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=safe.directory GIT_CONFIG_VALUE_0=* git log",
            "grep -r core.hooksPath docs",
        ),
    ),
    "skip_variables": (
        (
            "HUSKY=0 git commit -m x",
            "export HUSKY=0 && git push",
            "SKIP=lint git commit",
            "env SKIP=lint,test pre-commit run",
            "GITGATES=0 git push",
            "GITGATES_SKIP=check make commit",
            "PREK_SKIP=x bash -c 'git commit'",
            "LEFTHOOK=false git commit",
            "SKIP=x; export SKIP; git commit",
            "GITGATES_RIG=other git commit -m x",
            "export GITGATES_ROLE=other; git commit -m x",
            "env GITGATES_AGENT=other git push",
        ),
        (
            "HUSKY=1 git commit -m x",
            "SKIP=slow make test",
            "MY_SKIP=x git commit",
            "echo HUSKY=0",
            "SKIP= git commit",
            "git commit -m 'SKIP=lint'",
            "HUSKY=0; git log",
            "GITGATES_RIG= git commit -m x",
            "echo $GITGATES_RIG",
        ),
    ),
    "uninstall": (
        (
            "pre-commit uninstall",
            "python3 -m pre_commit uninstall -t pre-push",
            "gitgates uninstall-hooks",
            ".venv/bin/python -m gitgates uninstall-hooks --agent claude",
            "npx lefthook uninstall",
            "uv run pre-commit uninstall",
        ),
        (
            "pip uninstall pre-commit",
            "pre-commit run -a",
            "gitgates install-hooks --help",
            "gitgates uninstall-hooks --help",
            "man pre-commit",
        ),
    ),
    "person_verbs": (
        (
            "gitgates approve review skip",
            "gitgates intent approve-scope INT-001",
            "env -i PATH=$PATH gitgates intent approve-scope X",
        ),
        (
            "gitgates review skip --reason x",
            "gitgates intent approve-scope X --token abc",
            "gitgates intent show approve-scope",
            "echo gitgates approve",
        ),
    ),
    "hooks_folder": (
        (
            "rm .git/hooks/pre-commit",
            "rm -f .git/hooks/*",
            "rm -rf .g*/hooks",
            "cd .git/hooks && rm pre-commit",
            "cd .git && mv hooks /tmp",
            "chmod -x .git/hooks/pre-commit",
            "echo 'exit 0' > .git/hooks/pre-commit",
            "ln -sf /bin/true .git/hooks/pre-commit",
            "cp /bin/true .git/hooks/pre-commit",
            "cp -t .git/hooks a b",
            "sed -i s/a/b/ .git/hooks/pre-commit",
            "tee -a .git/hooks/pre-push < x",
            "truncate -s 0 .git/hooks/pre-push",
            "dd if=/dev/null of=.git/hooks/pre-push",
            "ls .git/hooks/* | xargs rm",
            "find .git/hooks -type f -delete",
            "find .git -name pre-commit -exec rm .git/hooks/x {} +",
            'rm "$(git rev-parse --git-dir)/hooks/pre-commit"',
            'rm "$(git rev-parse --git-path hooks)/pre-commit"',
            "for f in pre-commit pre-push; do rm .git/hooks/$f; done",
            "rm $PWD/.git/hooks/pre-commit",
            "cat > .git/hooks/pre-commit <<X\nX",
            "rm $'.git/hooks\\x00/pre-commit'",
        ),
        (
            "cat .git/hooks/pre-commit",
            "ls -l .git/hooks > /tmp/listing",
            "cp .git/hooks/pre-commit /tmp/x",
            "rm -rf .github/hooks hooks/x",
            "sed s/a/b/ .git/hooks/pre-commit",
            "rm -rf build dist *.pyc",
            "find . -name '*.pyc' -delete",
            "find . -name '*.orig' | xargs rm -f",
            'rm -rf "$TMPDIR_OF_MINE"/*',
            "d=$(mktemp -d); git clone . $d; rm -rf $d/.git/hooks $d",
            "mv sub/a .",
            "echo rm .git/hooks/pre-commit",
        ),
    ),
    "agent_settings": (
        (
            "echo '{}' > .claude/settings.json",
            "rm -rf .claude",
            "jq . x | tee .claude/settings.local.json",
            "sed -i.bak /hooks/d ~/.claude/settings.json",
            "echo {} > ~/.claude/settings.json",
            "mv .claude .claude-off",
        ),
        (
            "cat .claude/settings.json",
            "grep -c hooks .claude/settings.json > /tmp/n",
            "echo x > .claude/notes.md",
            "echo x > settings.json",
        ),
    ),
    "gate_settings": (
        (
            "echo x >> gitgates.toml",
            "rm pypro*.toml",
            "git rm -q .pre-commit-config.yaml",
            "git checkout HEAD~3 -- gitgates.toml",
            "git -C sub -c a.b=c --no-pager checkout HEAD~3 -- ../gitgates.toml",
            "yq -i '.repos = []' .pre-commit-config.yaml",
            "sed -i '/tool.gitgates/,$d' pyproject.toml",
            "printf '[tool.gitgates]\\njobs = 1\\n' >> pyproject.toml",
            "mv pyproject.toml x",
        ),
        (
            "cat gitgates.toml > /tmp/x",
            "sed -i 's/^version.*/version = \"2\"/' pyproject.toml",
            "gitgates check && sed -i s/a/b/ pyproject.toml",
            "cp pyproject.toml /tmp/gitgates.toml",
            "echo x > sub/gitgates.toml",
        ),
    ),
    "intents_file": (
        (
            "rm .orchestration/active_intents.yaml",
            "rm -r .orchestration",
            "cat x > .orchestration/active_intents.yaml",
        ),
        (
            "cat .orchestration/active_intents.yaml",
            "echo x > .orchestration/notes",
            "rm active_intents.yaml",
        ),
    ),
    "state_folder": (
        (
            "rm -rf .git/gitgates",
            "find .git/gitgates -delete",
            "echo '{}' >> .git/gitgates/sessions/s1.jsonl",
            "git notes --ref=gitgates add -m x HEAD",
            "git notes --ref refs/notes/gitgates remove HEAD",
            "git update-ref -d refs/notes/gitgates",
        ),
        (
            "ls .git/gitgates > /tmp/x",
            "rm -rf gitgates",
            "cat .git/gitgates/runs/x/result.json",
            "git notes --ref=gitgates show HEAD",
            "git notes add -m gitgates HEAD~1",
            "git fetch origin refs/notes/gitgates:refs/notes/gitgates",
        ),
    ),
    "git_folder": (
        (
            "mv .git /tmp/x",
            "rm -rf .git",
            'rm -rf "$PWD"',
            "rm -rf ../repo",
            "echo '[core] bare = true' >> .git/config",
            "git config core.bare true",
            "git -c core.worktree=/tmp status",
            'rm -rf "$(git rev-parse --git-dir)"',
        ),
        (
            "mv .github x",
            "cp -r ../other ./x && rm -rf $PWD/build",
            "git config core.bare",
            "git config core.editor vi",
            "cat .git/config > /tmp/x",
            "echo x > .git/COMMIT_EDITMSG",
            "rm -rf /tmp/other/.git",
            "rsync -a . host:/x --exclude .git",
            "git -C /tmp/other mv .git x",
        ),
    ),
    "git_exclude": (
        (
            "echo x >> .git/info/exclude",
            "printf x | tee -a .git/info/exclude",
            "git config core.excludesFile /tmp/x",
        ),
        ("echo x >> .gitignore", "cat .git/info/exclude", "git ls-files --exclude=x > /tmp/y"),
    ),
    "hidden_files": (
        (
            "git update-index --skip-worktree a.py",
            "git update-index --assume-unchanged a.py",
            "git ls-files | xargs git update-index --skip-worktree",
        ),
        (
            "git update-index --no-skip-worktree a.py",
            "git update-index --refresh",
            "git log --grep=--skip-worktree",
        ),
    ),
    "reviewer_files": (
        (
            "rm .claude/agents/reviewer.md",
            "echo x > .claude/skills/review/SKILL.md",
            "cp x ~/.claude/commands/code-review.md",
        ),
        (
            "cat .claude/agents/reviewer.md",
            "echo x > .claude/agents/other.md",
            "echo x > .claude/skills/other/SKILL.md",
        ),
    ),
    "nested_agent": (
        (
            "claude -p 'do it' --dangerously-skip-permissions",
            "claude --permission-mode=bypassPermissions -p x",
            "codex exec --yolo x",
            "timeout 60 codex exec -s danger-full-access - < x",
            "gemini -y -p x",
        ),
        (
            "claude -p 'explain --dangerously-skip-permissions'",
            "claude --version",
            "codex exec 'say yolo'",
            "echo claude --dangerously-skip-permissions",
        ),
    ),
    "unreadable": (
        (
            "git commit -m 'it --no-verify",
            'bash -c "git commit -m \'HUSKY=0"',
            "git commit -m 'HUSKY=0' && && x",
            "echo " + "x" * 200_000,
            "git commit -m skip" + " | a" * 10_000,
        ),
        ("echo 'x", "make && && x", "ls -l 'x"),
    ),
}


@pytest.fixture(name="agent")
def _agent(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> Agent:
    home = repo.path.parent / "home"
    home.mkdir(exist_ok=True)
    monkeypatch.setenv("HOME", str(home))
    repo.git("config", "alias.sneaky", "commit --no-verify")
    repo.git("config", "alias.ci", "commit")
    repo.write("sub/a", "")
    return begin(repo, CONFIG)


def judged(answer: dict[str, Any]) -> str:
    """Return the answer to a tool call, and the rule: `deny no_verify`; empty for none."""
    own = answer.get("hookSpecificOutput", {})
    text = own.get("permissionDecisionReason", own.get("additionalContext", ""))
    found = FOUND.match(text)
    return f"{own.get('permissionDecision', 'warn')} {found[1]}" if found else text


def shell(agent: Agent, command: str) -> str:
    return judged(agent.pre("Bash", "", tool_input={"command": command}))


def test_each_rule_has_ways_to_write_it_and_look_alikes() -> None:
    assert [*SHELL] == [*RULES] == [name for name in Guard._fields if name != "enabled"]
    assert [name for name, pair in SHELL.items() if min(map(len, pair)) < 3] == []


@pytest.mark.parametrize("rule", SHELL)
def test_commands(agent: Agent, rule: str) -> None:
    found, fine = SHELL[rule]
    expected = f"{getattr(Guard(), rule)} {rule}"
    assert {one: shell(agent, one) for one in found} == dict.fromkeys(found, expected)
    assert {one: shell(agent, one) for one in fine} == dict.fromkeys(fine, "")


# Edits


def test_the_settings_of_another_agent(agent: Agent) -> None:
    """Where they are: an agent may set up another one, and not take our hooks out of it."""
    assert judged(agent.pre("Write", ".codex/hooks.json")) == ""
    agent.repo.write(".codex/hooks.json", "{}")
    assert judged(agent.pre("Write", ".codex/hooks.json")) == "deny agent_settings"
    assert shell(agent, "rm -rf .codex") == "deny agent_settings"
    assert shell(agent, "rm -rf .gemini") == ""


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (".git/hooks/pre-commit", "deny hooks_folder"),
        ("sub/../.git/hooks/new", "deny hooks_folder"),
        ("link/hooks/pre-commit", "deny hooks_folder"),
        (".GIT/HOOKS/pre-commit", "deny hooks_folder"),
        (".claude/settings.json", "deny agent_settings"),
        (".claude/settings.local.json", "deny agent_settings"),
        ("../home/.claude/settings.json", "deny agent_settings"),
        ("gitgates.toml", "ask gate_settings"),
        ("gitgates.local.toml", "ask gate_settings"),
        (".pre-commit-config.yaml", "ask gate_settings"),
        (".orchestration/active_intents.yaml", "ask intents_file"),
        (".git/gitgates/sessions/s1.jsonl", "deny state_folder"),
        (".git/config", "deny git_folder"),
        (".git/info/exclude", "ask git_exclude"),
        (".claude/agents/reviewer.md", "ask reviewer_files"),
        (".claude/skills/code-review/SKILL.md", "ask reviewer_files"),
        ("../home/.claude/commands/review.md", "ask reviewer_files"),
        ("hooks/pre-commit", ""),
        (".github/hooks/pre-commit", ""),
        ("docs/settings.json", ""),
        (".claude/agents/other.md", ""),
        ("sub/gitgates.toml", ""),
        (".gitignore", ""),
    ],
)
def test_a_file_that_a_tool_writes(agent: Agent, path: str, expected: str) -> None:
    (agent.repo.path / "link").symlink_to(".git")
    for tool in ("Write", "Edit"):
        assert judged(agent.pre(tool, path)) == expected
    notebook = {"notebook_path": str(agent.repo.path / path), "new_source": "x"}
    assert judged(agent.pre("NotebookEdit", "", tool_input=notebook)) == expected


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"old_string": '"x"', "new_string": '"y"'}, ""),
        ({"old_string": '"true"', "new_string": '"false"'}, "ask gate_settings"),
        ({"old_string": "tool.gitgates", "new_string": "tool.other"}, "ask gate_settings"),
        ({"old_string": "", "new_string": "# gitgates\n"}, ""),
        ({"old_string": "e", "new_string": "E"}, ""),  # no TOML, or the first of them alone
        ({"old_string": "true", "new_string": "no", "replace_all": True}, "ask gate_settings"),
        ({"edits": [{"old_string": "x", "new_string": "y"}]}, ""),
        ({"edits": [{"old_string": "x", "new_string": "true"},
                    {"old_string": "true", "new_string": "z", "replace_all": True}]},
         "ask gate_settings"),
        ({"content": EDITED + "# more\n[tool.ruff]\n"}, ""),
        ({"content": EDITED.replace("check", "lint")}, "ask gate_settings"),
        ({"content": '[project]\nname = "x"\n'}, "ask gate_settings"),
        ({"content": "["}, ""),
    ],
)  # fmt: skip
def test_other_tables_of_pyproject_may_be_edited(
    agent: Agent, change: dict[str, Any], expected: str
) -> None:
    agent.repo.write("pyproject.toml", EDITED)
    path = str(agent.repo.path / "pyproject.toml")
    assert judged(agent.pre("Edit", "", tool_input={"file_path": path, **change})) == expected


def test_what_is_wrong_with_the_configuration_may_be_mended(agent: Agent) -> None:
    agent.repo.config(CONFIG.replace('["check"]', '["chekc"]'))
    path = str(agent.repo.path / "pyproject.toml")
    mend = {"file_path": path, "old_string": "chekc", "new_string": "check"}
    assert judged(agent.pre("Edit", "", tool_input=mend)) == ""


def test_a_pattern_means_guarded_files_that_are_there(agent: Agent) -> None:
    assert shell(agent, "chmod 600 *.local.toml") == ""
    agent.repo.write("gitgates.local.toml", "")
    assert shell(agent, "chmod 600 *.local.toml") == "ask gate_settings"
    assert shell(agent, "rm -r ../*/.g[i]t") == "deny git_folder"
    assert shell(agent, "rm -r ../*/*it") == ""


def test_no_pattern_is_looked_for_in_the_file_system(
    agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(os, "scandir", lambda _path: pytest.fail("it may be endless"))
        assert shell(agent, "rm /*/*/*/x-*; rm .git/hooks/*") == "deny hooks_folder"


def test_the_hooks_folder_that_is_configured_and_that_of_a_linked_worktree(agent: Agent) -> None:
    agent.repo.git("config", "core.hooksPath", ".husky")
    assert judged(agent.pre("Write", ".husky/pre-commit")) == "deny hooks_folder"
    assert shell(agent, "rm -r .husky") == "deny hooks_folder"
    agent.repo.git("worktree", "add", "-q", "../linked")
    linked = Agent(Repo(agent.repo.path.parent / "linked"), "s2")
    assert shell(linked, "rm ../repo/.git/hooks/pre-commit") == "deny hooks_folder"
    assert shell(linked, "rm .git") == "deny git_folder"
    assert shell(linked, "rm -r $(git rev-parse --git-dir)/gitgates") == "deny state_folder"


# Answers

NO_VERIFY = """\
gitgates: the guard, rule `no_verify`: git commit --no-verify -m a b
It skips the hooks of git. Fix what the gates report, and say of what cannot be fixed: \
gitgates cannot-fix GATE --reason "why".\
"""
COMMAND = "git commit --no-verify -m 'a b'"


def test_the_answer_says_what_and_why_and_what_to_do_instead(agent: Agent) -> None:
    said = agent.pre("Bash", "", tool_input={"command": COMMAND})
    own = {"permissionDecision": "deny", "permissionDecisionReason": NO_VERIFY}
    assert said == {"hookSpecificOutput": {"hookEventName": "PreToolUse", **own}}


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ('no_verify = "ask"', "ask no_verify"),
        ('no_verify = "warn"', "warn no_verify"),
        ('no_verify = "off"', ""),
        ("enabled = false", ""),
        ('uninstall = "off"', "deny no_verify"),
    ],
)
def test_each_rule_may_be_answered_in_another_way(
    agent: Agent, settings: str, expected: str
) -> None:
    agent.repo.config(f"{CONFIG}[guard]\n{settings}\n")
    assert shell(agent, COMMAND) == expected


def test_the_strongest_answer_counts(agent: Agent) -> None:
    both = f"echo x >> .git/info/exclude; {COMMAND}"
    assert shell(agent, both) == "deny no_verify"


def test_where_nobody_can_be_asked_it_is_refused(agent: Agent) -> None:
    agent.env["CLAUDE_CODE_SESSION_ATTENDED"] = "0"
    assert judged(agent.pre("Write", "gitgates.toml")) == "deny gate_settings"


def test_without_a_parser_the_person_is_asked(
    agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shell_syntax, "_parser", lambda: None)
    said = agent.pre("Bash", "", tool_input={"command": 'echo "--no-verify"'})
    assert judged(said) == "ask unreadable"
    reason = said["hookSpecificOutput"]["permissionDecisionReason"]
    assert "the parser for commands cannot be loaded, or would take too long" in reason
    assert shell(agent, "echo hello") == ""


def test_a_review_may_not_be_skipped_in_the_strict_form(agent: Agent) -> None:
    agent.repo.config(CONFIG.replace('["check"]', '["review"]') + '[review]\nmode = "require"\n')
    assert shell(agent, "gitgates review skip --reason x") == "deny person_verbs"
    assert shell(agent, "gitgates review skip --reason x --token abc") == ""
    assert shell(agent, "gitgates review status") == ""


def test_the_verbs_are_those_that_want_a_person() -> None:
    # Whether an advice blocks, its verbs know; they ask for a person then.
    others = {action for action in ACTIONS if not action.startswith("advice ")}
    assert {" ".join(verb) for verb in PERSONS} == {"approve", *others}


def test_it_is_needed_only_where_an_agent_is_blocked(repo: Repo) -> None:
    gates = '[gates.check]\ncommand = "true"\n[hooks.pre-commit]\ngates = ["check"]\n'
    assert shell(begin(repo, gates), COMMAND) == ""
    advice = '[[advice]]\ntitle = "A"\nhook_command = "true"\nhook_trigger = "session-end"\n'
    assert shell(begin(repo, advice), COMMAND) == ""
    assert shell(begin(repo, f'{advice}hook_on_failure = "block"\n'), COMMAND) == "deny no_verify"
