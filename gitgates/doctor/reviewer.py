"""Whether the reviewer that the gate `review` may ask for is there, and as it was written."""

from __future__ import annotations

import os

from gitgates.doctor.claude_sources import enabled_plugins
from gitgates.doctor.findings import Finding
from gitgates.engine.hooks import names_agent
from gitgates.errors import GitgatesError
from gitgates.hosts.claude.settings import FOLDER, settings_file
from gitgates.install import review_files
from gitgates.policies.needs import is_review_on, is_strict_possible

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from gitgates.doctor.claude_sources import Source
    from gitgates.git.repo import Repo
    from gitgates.types import Config

_OURS = "gitgates"


def check_reviewer(
    config: Config, repo: Repo, env: Mapping[str, str], found: list[Source]
) -> list[Finding]:
    """Return what is missing for a review, where our hooks are installed."""
    heard = [source for source in found if source.heard]
    if not heard or not is_review_on(config):
        return []
    folders = _folders(repo, env)
    said = []
    for scope, folder_abs in folders.items():
        here = [one for one in heard if one.scope in (scope, "local" if scope == "project" else "")]
        if here:
            said += _files(config, folder_abs, here[0])
    if is_strict_possible(config) and not _is_there(config, folders, found):
        said.append(_missing(config, heard[0]))
    return said


def _folders(repo: Repo, env: Mapping[str, str]) -> dict[str, str]:
    """Return the folders that agents are defined in: that of the project, and the person's own."""
    folders = {"project": os.path.join(repo.root_abs, FOLDER)}
    try:
        folders["user"] = os.path.dirname(settings_file("user", repo.root_abs, env))
    except GitgatesError:
        return folders  # without a home, nobody has any there
    return folders


def _files(config: Config, folder_abs: str, source: Source) -> list[Finding]:
    """Find files that installing would write anew."""
    note = Finding("note", "agent", "", "", source.install)
    try:
        wanted = review_files.wanted(config)
        looked = review_files.look(folder_abs, wanted)
    except GitgatesError as error:
        return [note._replace(where=folder_abs, what=error.message, mend="mend the file")]
    paths = {file.path for file in wanted}
    old = [one.path for one in looked if one.state == review_files.OLD and one.path in paths]
    where = os.path.dirname(source.where)
    what = "is not as the configuration and this version want it"
    return [note._replace(where=os.path.join(where, path), what=what) for path in old]


def _is_there(config: Config, folders: Mapping[str, str], found: list[Source]) -> bool:
    reviewer = config.review.reviewer
    names = [name for folder_abs in folders.values() for name in review_files.agents_in(folder_abs)]
    plugins = enabled_plugins(found)
    if _OURS in plugins:
        names.append(f"{_OURS}:reviewer")
    if any(names_agent((reviewer,), name) for name in names):
        return True
    plugin, is_named, _agent = reviewer.partition(":")
    return bool(is_named) and plugin != _OURS and plugin in plugins  # what it holds is not known


def _missing(config: Config, source: Source) -> Finding:
    reviewer = config.review.reviewer
    what = (
        f"Claude Code has no agent `{reviewer}`: where its decision is wanted, nobody can give it"
    )
    mend = source.install
    if source.scope in ("plugin", "managed") or not review_files.may_define(reviewer):
        mend = f"define it in {os.path.join(FOLDER, review_files.AGENTS)}, or name another"
        mend += " in [tool.gitgates.review] reviewer"
    missing = Finding("note", "agent", source.where, what, mend)
    return missing._replace(severity="problem") if config.review.mode == "require" else missing
