"""`install-hooks --agent` and `uninstall-hooks --agent`."""

from __future__ import annotations

import os
import sys

import click

from gitgates import environ
from gitgates.cli.repository import configuration
from gitgates.config.load import load
from gitgates.errors import ConfigError, GitgatesError
from gitgates.hosts.claude import settings
from gitgates.hosts.claude.settings import RULES_FILE
from gitgates.install import agent_files, agents, own_file
from gitgates.install.own_file import shown
from gitgates.policies.needs import gates_on
from gitgates.policies.rules import rules_text
from gitgates.types import Config

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from gitgates.git.repo import Repo
    from gitgates.install.agent_files import AgentFile

_LEFT = "has been changed since we wrote it, and is left as it is"
_SAID = {
    agent_files.MISSING: "written",
    agent_files.OLD: "brought up to date",
    agent_files.CURRENT: "is there already",
    agent_files.EDITED: _LEFT,
    agent_files.FOREIGN: "is there, not from us, and is used as it is",
    agent_files.DANGLING: "is a link to what is not there, and is left as it is",
}


def install(
    repo: Repo, *, scope: str, print_only: bool, with_rules: bool, without_asking: bool
) -> None:
    """Write our hooks into the settings of a scope, and a review's files; say what was done."""
    config = load(repo.root_abs) or Config()
    wanted = agents.entries(config)
    start, missing = agents.start(scope, environ.read())
    if not wanted:
        _add_hooks(repo, may_ask=not (without_asking or print_only), yes=without_asking)
        config = configuration(repo)
        wanted = agents.entries(config)
    path_abs = settings.settings_file(scope, repo.root_abs, environ.read())
    folder_abs, name = os.path.dirname(path_abs), shown(path_abs, repo.root_abs)
    texts, remark = _select_files(config, folder_abs, repo)
    files = agent_files.plan(folder_abs, texts)
    if print_only:
        click.echo(agents.show(wanted, start), nl=False)
        for path, text in texts.items():
            file = shown(os.path.join(folder_abs, path), repo.root_abs)
            click.echo(f"\n{file}:\n\n{text}", nl=False)
        return
    _require_inside(repo, scope, path_abs, files, with_rules=with_rules)
    rules = _with_rules(repo) if with_rules else None
    before = own_file.read(path_abs)
    after = agents.put(before, wanted, start, name)
    was_there = before is not None and agents.ours_in(agents.parse_settings(before, name))
    how = "brought up to date" if was_there else "added"
    changed = f"our hooks were {how}: {', '.join(one.event for one in wanted)}"
    _replace(path_abs, name, before, after, same="our hooks are there already", changed=changed)
    _write_files(folder_abs, files, repo)
    if remark:
        click.echo(remark)
    if rules:
        same, changed = "the rules are there already", "the rules of the gates were written"
        path_abs = os.path.join(repo.root_abs, RULES_FILE)
        _replace(path_abs, RULES_FILE, *rules, same=same, changed=changed)
    _say_more(scope, missing)
    for name in gates_on(config):
        click.echo(
            "gitgates: where Claude Code asks before it runs a command, allow these in its "
            f"permissions: Bash(gitgates {name}:*)"
        )


def _add_hooks(repo: Repo, *, may_ask: bool, yes: bool) -> None:
    """Configure what `gitgates init --agent claude` proposes, if the person wants that.

    Raises: ConfigError where nobody can be asked, or does not want it.
    """
    # Cold: most have configured their hooks, and need no tomlkit.
    from gitgates.cli.init import finish
    from gitgates.config.edit import difference
    from gitgates.discover.propose import propose_agent

    edit = propose_agent(repo.root_abs)
    proposal = difference(edit).decode("utf-8", "surrogateescape")
    is_asked = may_ask and sys.stdin.isatty()
    if is_asked:
        click.echo(f"The configuration names no hook of an agent. Proposed is:\n\n{proposal}")
    if yes or (is_asked and click.confirm(f"Write that to {edit.file}?", default=True)):
        finish(repo.root_abs, edit, dry_run=False)
        return
    what = "" if is_asked else f"\n  Proposed is:\n\n{proposal}"
    raise ConfigError(
        f"the configuration names no hook of an agent{what}",
        "Write that: gitgates init --agent claude\n"
        "  Write that, and install it: gitgates install-hooks --agent claude --yes",
    )


def uninstall(repo: Repo, scope: str) -> None:
    """Take our hooks out of the settings of a scope, our files, and our block in CLAUDE.md."""
    env = environ.read()
    path_abs = settings.settings_file(scope, repo.root_abs, env)
    folder_abs, name = os.path.dirname(path_abs), shown(path_abs, repo.root_abs)
    files = agent_files.plan(folder_abs, {})
    _require_inside(repo, scope, path_abs, files, with_rules=False)
    before = own_file.read(path_abs)
    after = None if before is None else agents.without(before, name)
    gone = "removed; only our hooks were in it" if after is None else "our hooks were taken out"
    _replace(path_abs, name, before, after, same="no hooks of ours", changed=gone)
    left = [one for one in settings.SCOPES if one != scope and has_ours(one, repo, env)]
    others = {one: settings.settings_file(one, repo.root_abs, env) for one in left}
    if folder_abs not in map(os.path.dirname, others.values()):  # else those need them, too
        _write_files(folder_abs, files, repo)
    for one, other_abs in others.items():
        click.echo(
            f"gitgates: our hooks stay in {shown(other_abs, repo.root_abs)}\n"
            f"  Take them out: gitgates uninstall-hooks --agent claude --scope {one}"
        )
    if not left:
        _take_rules(repo)


def has_ours(scope: str, repo: Repo, env: Mapping[str, str]) -> bool:
    """Return whether the settings of a scope hold hooks of ours."""
    try:
        path_abs = settings.settings_file(scope, repo.root_abs, env)
        text = own_file.read(path_abs)
        return bool(text and agents.ours_in(agents.parse_settings(text, path_abs)))
    except GitgatesError:
        return False  # not what was asked for


def _require_inside(
    repo: Repo, scope: str, settings_abs: str, files: tuple[AgentFile, ...], *, with_rules: bool
) -> None:
    """Refuse links that lead out of the repository, before anything is written through one.

    A person's own settings may well be a link to somewhere else.
    """
    paths_abs = [os.path.join(repo.root_abs, RULES_FILE)] if with_rules else []
    if scope != "user":
        folder_abs = os.path.dirname(settings_abs)
        written = [one.path for one in files if one.state in agent_files.WRITTEN]
        paths_abs += [settings_abs, *(os.path.join(folder_abs, path) for path in written)]
    own_file.require_inside(repo.root_abs, *paths_abs)


# The files of a review


def _select_files(config: Config, folder_abs: str, repo: Repo) -> tuple[dict[str, str], str]:
    """Return the files that a configuration wants in a folder, and what to say of the reviewer."""
    texts = agent_files.wanted(config)
    reviewer = config.review.reviewer
    own = agent_files.agent_path(reviewer)
    theirs = agent_files.agents_in(folder_abs).get(reviewer) if texts else None
    if theirs and theirs != own:
        texts.pop(own, None)
        path = shown(os.path.join(folder_abs, theirs), repo.root_abs)
        return texts, f"{path}: defines the agent `{reviewer}`, and is used as it is"
    if texts and not agent_files.may_define(reviewer):
        return texts, (
            f"gitgates: no file is written for the reviewer `{reviewer}`: a plugin, or Claude Code "
            "itself, is to have it"
        )
    return texts, ""


def _write_files(folder_abs: str, files: tuple[AgentFile, ...], repo: Repo) -> None:
    """Write what is missing or no longer right, take out what is not wanted; say what was done.

    Raises: StateError where a file cannot be written.
    """
    for file in files:
        is_wanted = file.after is not None
        if file.state == agent_files.OLD or (is_wanted and file.state == agent_files.MISSING):
            agent_files.apply(folder_abs, file)
        elif not is_wanted and file.state != agent_files.EDITED:
            continue
        said = _SAID[file.state] if is_wanted or file.state != agent_files.OLD else "removed"
        click.echo(f"{shown(os.path.join(folder_abs, file.path), repo.root_abs)}: {said}")


# CLAUDE.md


def _with_rules(repo: Repo) -> tuple[str | None, str]:
    """Return the text of CLAUDE.md without and with our block."""
    before = own_file.read(os.path.join(repo.root_abs, RULES_FILE))
    return before, agent_files.put_rules(before, rules_text(configuration(repo)))


def _take_rules(repo: Repo) -> None:
    path_abs = os.path.join(repo.root_abs, RULES_FILE)
    if agent_files.RULES_BEGIN.encode() not in own_file.content(path_abs):
        return
    before = own_file.read(path_abs)
    after = None if before is None else agent_files.without_rules(before)
    if after != before:
        own_file.require_inside(repo.root_abs, path_abs)
    changed = "removed; only the rules of the gates were in it"
    changed = changed if after is None else "the rules were taken out"
    _replace(path_abs, RULES_FILE, before, after, same="", changed=changed)


def _replace(
    path_abs: str, name: str, before: str | None, after: str | None, *, same: str, changed: str
) -> None:
    """Replace a file where that changes it; say what was done, or that it was so before."""
    if after != before:
        own_file.replace(path_abs, before, after)
    if said := same if after == before else changed:
        click.echo(f"{name}: {said}")


def _say_more(scope: str, remark: str) -> None:
    if remark:
        click.echo(f"gitgates: {remark}")
    if scope == "user":
        click.echo(
            "gitgates: these are your settings for every project, and hold what this repository "
            "needs\n  Where others need more, install there in the scope project or local"
        )
    click.echo("next: gitgates doctor --prove")
