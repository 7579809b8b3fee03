"""Which of the configured reviewers and review skills Claude Code can be seen to have."""

from __future__ import annotations

import os

from gitgates.engine.hooks import names_agent

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from gitgates.types import Review

_PLUGIN = "gitgates"  # the name of our own, which brings a reviewer and a skill `review`


def installed(
    review: Review, root_abs: str, env: Mapping[str, str]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the sub-agents and the skills that reviews are made with and that are there.

    That is what has a file in `.claude`, in the project or of the user, or comes with our plugin
    where that has started us. What other plugins bring cannot be seen; where the configuration
    names such a one (`plugin:name`), it is believed.
    """
    home = env.get("CLAUDE_CONFIG_DIR") or f"{env.get('HOME', '')}/.claude"
    projects = dict.fromkeys((root_abs, env.get("CLAUDE_PROJECT_DIR", root_abs)))
    folders = [*(f"{folder}/.claude" for folder in projects), home]
    plugin = env.get("CLAUDE_PLUGIN_ROOT", "")
    agents = [
        found
        for name in (review.reviewer, *review.agents)
        for found in _find(name, [f"{one}/agents/{name}.md" for one in folders])
        + _in_plugin(name, f"{plugin}/agents/{name}.md" if plugin else "")
    ]
    skills = [
        found
        for name in review.skills
        for found in _in_plugin(name, f"{plugin}/skills/{name}/SKILL.md" if plugin else "")
        # What we install is a command in a folder that has the plugin's name.
        + _in_plugin(name, *(f"{one}/commands/{_PLUGIN}/{name}.md" for one in folders))
        + _find(name, [path for one in folders for path in _skill_files(one, name)])
    ]
    return tuple(dict.fromkeys(agents)), tuple(dict.fromkeys(skills))


def installed_reviewer(review: Review, root_abs: str, env: Mapping[str, str]) -> str:
    """Return what the client calls the reviewer; empty where none can be seen."""
    agents, _skills = installed(review, root_abs, env)
    return next((one for one in agents if names_agent((review.reviewer,), one)), "")


def _skill_files(folder: str, name: str) -> tuple[str, str]:
    return f"{folder}/skills/{name}/SKILL.md", f"{folder}/commands/{name}.md"


def _find(name: str, files: Iterable[str]) -> list[str]:
    is_pattern = any(sign in name for sign in "*?|")
    if is_pattern or not (":" in name or any(os.path.isfile(path) for path in files)):
        return []
    return [name]


def _in_plugin(name: str, *files: str) -> list[str]:
    return [f"{_PLUGIN}:{name}"] if any(os.path.isfile(path) for path in files if path) else []
