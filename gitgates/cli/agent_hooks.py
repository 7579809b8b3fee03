"""`install-hooks --agent` and `uninstall-hooks --agent`."""

from __future__ import annotations

import os
import sys
from functools import partial

import click

from gitgates import environ
from gitgates.cli import agent_files, edits, init
from gitgates.cli.places import configuration
from gitgates.config.load import load
from gitgates.errors import ConfigError, GitgatesError
from gitgates.install import agents, claude, claude_md, own_file, review_files
from gitgates.policies.needs import is_review_on
from gitgates.record import Record
from gitgates.types import Config

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from gitgates.git.repo import Repo


class Asked(Record):
    """What the person asks for."""

    scope: str
    print_only: bool = False
    claude_md: bool = False
    yes: bool = False


def install(repo: Repo, asked: Asked) -> None:
    """Write our hooks into the settings of a scope, and a review's files; say what was done."""
    config = load(repo.root_abs) or Config()
    env = environ.read()
    wanted = claude.entries(config)
    start = agents.start(asked.scope, env)
    if not wanted:
        _add_hooks(repo, asked)
        config = configuration(repo)
        wanted = claude.entries(config)
    path_abs = agents.settings_file(asked.scope, repo.root_abs, env)
    shown = _shown(path_abs, repo)
    show = partial(_shown, repo=repo)
    files = agent_files.look(config, os.path.dirname(path_abs), show)
    if asked.print_only:
        click.echo(claude.show(wanted, start.command), nl=False)
        agent_files.show_all(files, show)
        return
    _require_inside(repo, asked, files)
    before = own_file.read(path_abs)
    rules = _with_rules(repo) if asked.claude_md else None
    after = claude.put(before, wanted, start.command, shown)
    if after == before:
        click.echo(f"{shown}: our hooks are there already")
    else:
        own_file.replace(path_abs, before, after)
        was_there = before is not None and claude.ours_in(claude.parse_settings(before, shown))
        how = "brought up to date" if was_there else "added"
        click.echo(f"{shown}: our hooks were {how}: {', '.join(one.event for one in wanted)}")
    agent_files.write(files, show)
    if rules:
        _put_rules(repo, rules)
    _say_more(asked.scope, start.remark)
    if is_review_on(config):
        click.echo(
            "gitgates: where Claude Code asks before it runs a command, allow these in its "
            "permissions: Bash(gitgates review:*)"
        )


def _add_hooks(repo: Repo, asked: Asked) -> None:
    """Configure what `gitgates init --agent claude` proposes, if the person wants that.

    Raises: ConfigError where nobody can be asked, or does not want it.
    """
    edit = init.propose_agent(repo.root_abs)
    proposal = edits.difference(edit).decode("utf-8", "surrogateescape")
    is_asked = sys.stdin.isatty() and not (asked.yes or asked.print_only)
    if is_asked:
        click.echo(f"The configuration names no hook of an agent. Proposed is:\n\n{proposal}")
    if asked.yes or (is_asked and click.confirm(f"Write that to {edit.file}?", default=True)):
        edits.finish(repo.root_abs, edit, dry_run=False)
        return
    what = "" if is_asked else f"\n  Proposed is:\n\n{proposal}"
    raise ConfigError(
        f"the configuration names no hook of an agent{what}",
        "Write that: gitgates init --agent claude\n"
        "  Write that, and install it: gitgates install-hooks --agent claude --yes",
    )


def uninstall(repo: Repo, asked: Asked) -> None:
    """Take our hooks out of the settings of a scope, our files, and our block in CLAUDE.md."""
    env = environ.read()
    path_abs = agents.settings_file(asked.scope, repo.root_abs, env)
    shown = _shown(path_abs, repo)
    found = review_files.look(os.path.dirname(path_abs), ())
    _require_inside(repo, asked, agent_files.Task(os.path.dirname(path_abs), (), found))
    before = own_file.read(path_abs)
    after = None if before is None else claude.without(before, shown)
    if after == before:
        click.echo(f"{shown}: no hooks of ours")
    else:
        own_file.replace(path_abs, before, after)
        removed = "removed; only our hooks were in it"
        click.echo(f"{shown}: {removed if after is None else 'our hooks were taken out'}")
    others = [scope for scope in agents.SCOPES if scope != asked.scope]
    left = [scope for scope in others if has_ours(scope, repo, env)]
    folder_abs = os.path.dirname(path_abs)
    if not any(_folder(scope, repo, env) == folder_abs for scope in left):  # they need them, too
        agent_files.take_out(folder_abs, partial(_shown, repo=repo))
    for scope in left:
        other = _shown(agents.settings_file(scope, repo.root_abs, env), repo)
        click.echo(
            f"gitgates: our hooks stay in {other}\n"
            f"  Take them out: gitgates uninstall-hooks --agent claude --scope {scope}"
        )
    if not left:
        _take_rules(repo)


def _require_inside(repo: Repo, asked: Asked, files: agent_files.Task) -> None:
    """Refuse links that lead out of the repository, before anything is written through one.

    A person's own settings may well be a link to somewhere else.
    """
    paths_abs = [os.path.join(repo.root_abs, claude_md.FILE)] if asked.claude_md else []
    if asked.scope != "user":
        settings_abs = agents.settings_file(asked.scope, repo.root_abs, environ.read())
        paths_abs.append(settings_abs)
        written = [one.path for one in files.found if one.state in review_files.WRITTEN]
        paths_abs += [os.path.join(files.folder_abs, path) for path in written]
    own_file.require_inside(repo.root_abs, *paths_abs)


def _folder(scope: str, repo: Repo, env: Mapping[str, str]) -> str:
    return os.path.dirname(agents.settings_file(scope, repo.root_abs, env))


def has_ours(scope: str, repo: Repo, env: Mapping[str, str]) -> bool:
    """Tell whether the settings of a scope hold hooks of ours."""
    try:
        path_abs = agents.settings_file(scope, repo.root_abs, env)
        text = own_file.read(path_abs)
        return bool(text and claude.ours_in(claude.parse_settings(text, path_abs)))
    except GitgatesError:
        return False  # not what was asked for


def _with_rules(repo: Repo) -> tuple[str | None, str]:
    """Return the text of CLAUDE.md without and with our block."""
    from gitgates.report.rules import rules_text

    before = own_file.read(os.path.join(repo.root_abs, claude_md.FILE))
    return before, claude_md.put(before, rules_text(configuration(repo)))


def _put_rules(repo: Repo, texts: tuple[str | None, str]) -> None:
    before, after = texts
    if before == after:
        click.echo(f"{claude_md.FILE}: the rules are there already")
        return
    own_file.replace(os.path.join(repo.root_abs, claude_md.FILE), before, after)
    click.echo(f"{claude_md.FILE}: the rules of the gates were written")


def _take_rules(repo: Repo) -> None:
    path_abs = os.path.join(repo.root_abs, claude_md.FILE)
    if not own_file.holds(path_abs, claude_md.BEGIN):
        return
    before = own_file.read(path_abs)
    after = None if before is None else claude_md.without(before)
    if after == before:
        return
    own_file.require_inside(repo.root_abs, path_abs)
    own_file.replace(path_abs, before, after)
    removed = "removed; only the rules of the gates were in it"
    click.echo(f"{claude_md.FILE}: {removed if after is None else 'the rules were taken out'}")


def _say_more(scope: str, remark: str) -> None:
    if remark:
        click.echo(f"gitgates: {remark}")
    if scope == "user":
        click.echo(
            "gitgates: these are your settings for every project, and hold what this repository "
            "needs\n  Where others need more, install there in the scope project or local"
        )
    click.echo("next: gitgates doctor --prove")


def _shown(path_abs: str, repo: Repo) -> str:
    path = os.path.relpath(path_abs, repo.root_abs)
    return path_abs if path.startswith("..") else path
