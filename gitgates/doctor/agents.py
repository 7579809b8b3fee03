"""Whether Claude Code calls us at each event that the configuration needs, once, and in time."""

from __future__ import annotations

import os
from itertools import product
from shlex import quote

from gitgates import environ
from gitgates.doctor.agent_settings import (
    Source,
    check_reviewer,
    environment,
    loudest,
    read_source,
    sources,
)
from gitgates.doctor.findings import Finding
from gitgates.hosts.claude import FOLDER
from gitgates.hosts.claude.settings import (
    BARE,
    FILES,
    MANAGED_ONLY,
    NO_HOOKS,
    Entry,
    lets_through,
    samples,
)
from gitgates.install import agents
from gitgates.install.agents import entries, tools_of
from gitgates.lifecycle import HOOK_OF, TOOL_EVENTS, kind_of
from gitgates.policies.needs import needs
from gitgates.proc.call import which

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from gitgates.doctor.findings import Subject
    from gitgates.git.repo import Repo
    from gitgates.hosts.claude.settings import Heard
    from gitgates.types import Config

_INSTALL = "gitgates install-hooks --agent claude"
_ENABLE = f"take `{NO_HOOKS}` out of it"
_OF_AGENTS = ("subagent-start", "subagent-end")
_MATCHED = (*TOOL_EVENTS, *_OF_AGENTS)
# The beginnings of names by which other code is loaded, or another program or repository is found.
_HARMFUL = (
    *("BASH_ENV", "DYLD_", "LD_", "PYTHONHOME", "PYTHONPATH", "PYTHONUSERBASE", "PYTHONWARNINGS"),
    *("GIT_CONFIG", "GIT_DIR", "GIT_EXEC_PATH", "GIT_INDEX_FILE", "GIT_OBJECT", "GIT_WORK_TREE"),
)


def check_agents(subject: Subject) -> list[Finding]:
    """Return what there is to say of Claude Code; nothing where neither side knows of the other."""
    config, repo, env = subject.config, subject.repo, subject.repo.env
    found = sources(repo, env)
    wanted = entries(config) if config else ()
    ours = [source for source in found if source.heard]
    misplaced = _misplaced(repo, ours)
    if not wanted and not ours and not misplaced:
        return []
    said = _disabled(found) + [finding for source in found for finding in _switches(source)]
    said += _set_off(found) + (_environment(found, env) if ours else [])
    said += misplaced
    if wanted or config is None:
        said += _missing(wanted, found)
    for source in ours:
        said += _check_source(source, config, wanted) if config else []
    said += _twice(ours)
    said += check_reviewer(config, repo, env, found) if config else []
    trouble = {one.where for one in said if one.severity == "problem"}
    for source in ours:
        program = _program(source, env)
        if not program and source.where not in trouble:
            program = [_finding(source, "our hooks are there")._replace(severity="ok")]
        said += program
    return said


def _finding(source: Source, what: str, mend: str = "") -> Finding:
    return Finding(severity="problem", check="agent", where=source.where, what=what, mend=mend)


def _switches(source: Source) -> list[Finding]:
    """Find what keeps the client from running hooks, or us from running gates."""
    found = []
    if source.broken:
        found.append(_finding(source, f"cannot be read: {source.broken}", "mend the file"))
    if not isinstance(source.settings.get(NO_HOOKS, False), bool):
        what = f"`{NO_HOOKS}` is no boolean: Claude Code runs no hook of this file"
        found.append(_finding(source, what, _ENABLE))
    if source.scope == "managed" and source.settings.get(MANAGED_ONLY) is True:
        what = f"`{MANAGED_ONLY}` is true: Claude Code runs no hooks but those of this file"
        found.append(_finding(source, what, "ask whoever manages this machine"))
    return found


def _disabled(found: list[Source]) -> list[Finding]:
    source = loudest(found, NO_HOOKS)
    if source is None or source.settings[NO_HOOKS] is not True:
        return []
    what = f"`{NO_HOOKS}` is true: Claude Code runs no hook at all"
    return [_finding(source, what, _ENABLE)]


def _set_off(found: list[Source]) -> list[Finding]:
    """Find what the `env` of the settings takes away; louder settings may give it back."""
    theirs, said = environment(found, {}), []
    for source in found:
        table = source.settings.get("env")
        names = {name for name, value in theirs.items() if str(_get(table, name)) == value}
        mine = {name: theirs[name] for name in names}
        if environ.is_off(mine):
            what = "its `env` sets GITGATES=0: our hooks run no gate"
            said.append(_finding(source, what, "take GITGATES out of its `env`"))
        for gate, name in environ.skipped_gates(mine).items():
            skips = _finding(source, f"its `env` sets {name}: our hooks skip gate `{gate}`")
            mend = f"take {name} out of its `env`"
            said.append(skips._replace(severity="note", mend=mend))
    return said


def _get(table: object, name: str) -> object:
    return table.get(name) if isinstance(table, dict) else None


def _missing(wanted: tuple[Entry, ...], found: list[Source]) -> list[Finding]:
    """Find events that nothing of ours hears of."""
    heard = {one.event for source in found for one in source.heard}
    custom = {event: (source, command) for source in found for event, command in source.custom}
    missing = [one.event for one in wanted if one.event not in heard]
    said = [_custom(event, *custom[event]) for event in missing if event in custom]
    missing = [event for event in missing if event not in custom]
    if not missing:
        return said
    writable = [one for one in found if one.heard and one.scope != "managed"]
    if not writable and any(one.broken for one in found):
        return (
            said  # nobody knows what is in there, and nothing can be installed before it is mended
        )
    if not writable:
        what = f"Claude Code runs none of the gates: it does not call us at {', '.join(missing)}"
        where = os.path.join(FOLDER, FILES["project"])
        return [*said, Finding("problem", "agent", where, what, _INSTALL)]
    what = f"does not call us at {', '.join(missing)}"
    return [*said, _finding(writable[0], what, writable[0].install)]


def _custom(event: str, source: Source, command: str) -> Finding:
    """Compare a command that install-hooks would not write with the one that it would."""
    _before, ours, after = command.partition(BARE)
    if ours and not after.strip():
        what = f"a hook of your own at {event} speaks of gitgates: not looked into"
        return _finding(source, what)._replace(severity="note")
    what = f"runs `{command}` at {event}, where install-hooks writes `{BARE}`"
    if ours:
        what += f": `{after.strip()}` may hide what it answers"
    return _finding(source, what, f"take that hook out, then: {source.install}")


def _environment(found: list[Source], env: Mapping[str, str]) -> list[Finding]:
    """Find what the `env` of the settings puts in our program's way; nothing is started with it."""
    theirs, said = environment(found, {}), []
    for source in found:
        table = source.settings.get("env")
        mine = [name for name, value in theirs.items() if str(_get(table, name)) == value]
        harmful = sorted(name for name in mine if name.startswith(_HARMFUL))
        if harmful:
            what = f"its `env` sets {', '.join(harmful)}: other code may run instead of our hooks"
            one = _finding(source, what, f"take {', '.join(harmful)} out of its `env`")
            # Many projects set it for their own tests.
            said.append(one._replace(severity="note") if harmful == ["PYTHONPATH"] else one)
        if "PATH" in mine and (what := _path_trouble(theirs["PATH"], env)):
            said.append(_finding(source, f"its `env` sets PATH, {what}", "take PATH out of it"))
    return said


def _path_trouble(path: str, env: Mapping[str, str]) -> str:
    try:
        program = which("gitgates", path)
    except OSError:
        return "in which there is no `gitgates`"
    known = agents.is_known(program, env)
    return "" if known else f"in which `gitgates` is {program}, not this one"


def _check_source(source: Source, config: Config, wanted: tuple[Entry, ...]) -> list[Finding]:
    """Find hooks that miss a tool or an agent, end before the gates do, or are not needed."""
    found = []
    expected = {entry.event: entry for entry in wanted}
    names = {
        HOOK_OF[need.kind]: tools_of(need) if need.kind in TOOL_EVENTS else need.agents
        for need in needs(config)
    }
    for one in source.heard:
        entry = expected.get(one.event)
        if entry is None:
            continue
        slips = [name for name in samples(names[one.event]) if not lets_through(one.matcher, name)]
        if kind_of(one.event) in _MATCHED and slips:
            what = f"its matcher `{one.matcher}` at {one.event} lets {', '.join(slips)} slip by"
            found.append(_finding(source, what, source.install))
        if one.loose:
            found.append(
                _finding(source, f"calls us at {one.event}, but {one.loose}", source.install)
            )
        elif one.timeout_s < entry.timeout_s:
            found.append(_too_short(source, one, entry))
    idle = [one.event for one in source.heard if one.event not in expected]
    if idle and source.scope in ("project", "local"):  # others are for more than this repository
        what = f"calls us at {', '.join(dict.fromkeys(idle))}, which nothing needs"
        mend = source.install if wanted else source.uninstall
        found.append(_finding(source, what, mend)._replace(severity="note"))
    return found


def _too_short(source: Source, one: Heard, entry: Entry) -> Finding:
    what = (
        f"Claude Code ends {one.event} after {one.timeout_s:g} s, and lets everything through "
        f"then; the gates may take until {entry.timeout_s} s"
    )
    mend = source.install
    if source.scope == "plugin":
        mend = f"{source.uninstall}; then: {_INSTALL}"
    return _finding(source, what, mend)


def _twice(ours: list[Source]) -> list[Finding]:
    """Find events at which we are called by more than one source, or more than once by one."""
    found = []
    first: dict[str, Source] = {}
    for source in ours:
        events: dict[str, list[str]] = {}
        for one in source.heard:
            holder = first.setdefault(one.event, source)
            if holder is not source:
                events.setdefault(holder.where, []).append(one.event)
        found += [_both(source, one, events[one.where]) for one in ours if one.where in events]
        seen = [one.event for one in source.heard]
        again = sorted({event for event in seen if seen.count(event) > 1})
        if again:
            what = f"calls us more than once at {', '.join(again)}"
            found.append(_finding(source, what, source.install)._replace(check="twice"))
    return found


def _both(source: Source, other: Source, events: list[str]) -> Finding:
    """Tell of two sources. The same command in two settings files runs once (client 2.1.329)."""
    what = f"installed twice: {other.where} calls us, too, at {', '.join(events)}"
    found = _finding(source, what, source.uninstall)._replace(check="twice")
    commands = {one.command for one in (*source.heard, *other.heard)}
    if len(commands) > 1 or "plugin" in (source.scope, other.scope):
        return found
    same = "; Claude Code runs the same command once, and waits as long as one of them says"
    return found._replace(severity="note", what=what + same)


def _misplaced(repo: Repo, ours: list[Source]) -> list[Finding]:
    """Find our hooks in settings of subfolders, where only a session begun there reads them."""
    names = repo.git.names("ls-files", "-z", "-c", "-o", "--exclude-standard")
    folders = {folder for name in names for folder in _above(name)}
    found = []
    for folder, file in product(sorted(folders), (FILES["project"], FILES["local"])):
        name = os.path.join(folder, FOLDER, file)
        if not os.path.isfile(os.path.join(repo.root_abs, name)):
            continue
        source = read_source("project", os.path.join(repo.root_abs, name), repo.root_abs)
        if not source.heard:
            continue
        what = f"only a session that is begun in {folder} reads it, and none in the root"
        finding = _finding(source, what, f"{_INSTALL}   # and take ours out of {quote(name)}")
        found.append(finding._replace(severity="note" if ours else "problem"))
    return found


def _above(name: str) -> list[str]:
    """Return the folders that a file is in, but for the root and those of agents."""
    found = []
    while name := os.path.dirname(name):
        found.append(name)
    return [folder for folder in found if os.path.basename(folder) != FOLDER]


def _program(source: Source, env: Mapping[str, str]) -> list[Finding]:
    """Find what is wrong with the programs that our hooks start; nothing is started."""
    found = []
    for command in dict.fromkeys(one.command for one in source.heard):
        program = agents.program_of(command)
        if program is None:
            remark = agents.start("project", env).remark
            what, _, mend = remark.partition("\n  ")
            missing = [_finding(source, what, mend)] if remark else []
            in_path = agents.is_in_path(env)
            found += [one._replace(severity="note") if in_path else one for one in missing]
        elif not os.access(program, os.X_OK):
            found.append(_finding(source, f"its program {program} is gone", source.install))
        elif not agents.is_known(program, env):
            what = f"its program {program} is not the gitgates of this machine"
            found.append(_finding(source, what, source.install))
    return found
