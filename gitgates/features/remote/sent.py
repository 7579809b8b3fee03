"""What a gate would send to another machine: `gitgates explain --remote GATE`."""

from __future__ import annotations

import os

from gitgates.core.clean import utf8, visible_line
from gitgates.engine.plan.match import select
from gitgates.features.remote.gates import declared_env, local_keys
from gitgates.features.remote.inputs import Inputs, InputsError, secret_variables
from gitgates.features.remote.tree import root_of
from gitgates.git.repo import nul_split

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from gitgates.core.types import Config, Gate
    from gitgates.git.repo import Repo

_VERSION = 1
_IGNORED = ("ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory")
_MOST_NAMED = 20
_USUAL = ("HOME", "TERM", "LANG")  # variables that programs expect


def sent_inputs(repo: Repo, config: Config, gate: Gate) -> dict[str, Any]:
    """Return what a gate would send from the current working tree; nothing is sent.

    Reads each file, to find those that begin like a secret. Raises: GitgatesError, OSError.
    """
    not_secret = config.tables["remote"]["not_secret"]
    more = gate.remote.ignored_inputs
    patterns = gate.reuse.inputs
    inputs = Inputs(repo, repo.root_abs, patterns, more, not_secret=not_secret)
    variables = declared_env(gate, {"GITGATES_HOOK": "", **repo.env, **dict(gate.program.env)})
    root, problems = root_of(inputs), [*secret_variables(gate, variables), *inputs.problems]
    refused, bound = {problem.message for problem in problems}, []
    here = os.fsencode(repo.root_abs)
    for digest, path_abs in root.files.items():
        try:
            if here in root.blob(digest):
                bound.append(os.path.relpath(path_abs, repo.root_abs))
        except InputsError as error:
            path = os.path.relpath(path_abs, repo.root_abs)
            problem = InputsError.of_secret(path, error.what) if error.what else error
            problems += [problem] if problem.message not in refused else []
    sent = {path: state[0][1] for path, (_place, state) in inputs.files.items()}
    ignored = nul_split(repo.git.ask(*_IGNORED).stdout)
    return {
        "version": _VERSION,
        "gate": gate.name,
        "remote": gate.remote.allowed,
        "runs_here": local_keys(gate),
        "digest": f"{root.digest.hash}/{root.digest.size_bytes}",
        "directories": len(root.directories),
        "size_bytes": sum(sent.values()) + sum(map(len, root.directories.values())),
        "files": [{"path": utf8(path), "size_bytes": size} for path, size in sorted(sent.items())],
        "variables": [*variables],
        "links_to_absolute_places": [
            utf8(f"{path} -> {inputs.targets[path]}") for path in root.links
        ],
        "names_this_folder": [*map(utf8, sorted(bound))],
        "ignored": [utf8(path) for path in ignored if not select((path.rstrip("/"),), more, ())],
        "refused": [utf8(problem.full_message) for problem in problems],
    }


def sent_text(document: Mapping[str, Any]) -> str:
    """Return the document as text: files by their top-level folder."""
    files, refused = document["files"], document["refused"]
    tops: dict[str, list[int]] = {}
    for file in files:
        top, slash, _rest = file["path"].partition("/")
        tops.setdefault(top + slash, []).append(file["size_bytes"])
    by_size = sorted(tops.items(), key=lambda item: -sum(item[1]))
    rows = [f"{_size(sum(sizes)):>10}  {len(sizes):>7,}  {top}" for top, sizes in by_size]
    whole = f"{len(files):,} files, {document['directories']:,} directories"
    lines = [
        f"{document['gate']} would send {whole}, {_size(document['size_bytes'])}:",
        *_first(rows, "folders"),
        f"  input root {document['digest']}",
    ]
    variables = document["variables"]
    lines.append(f"variables: {', '.join(variables)}")
    if "PATH" not in variables:
        lines.append("`PATH`, and the programs in it, are those of the server.")
    if none := [name for name in _USUAL if name not in variables]:
        lines.append(
            f"not sent, because neither `env` nor `env_inputs` names them: {', '.join(none)}"
        )
    lines.append("git finds no repository there; user, time zone and locale differ.")
    for title, name in (
        ("links to absolute paths, which must exist there:", "links_to_absolute_places"),
        ("files with the path of this folder, which differs there:", "names_this_folder"),
        ("not sent, because git ignores it; the gate can name it in `ignored_inputs`:", "ignored"),
        ("refused, so it cannot run there:", "refused"),
    ):
        if document[name]:
            lines += [title, *_first([f"  {each}" for each in document[name]], "others")]
    if not document["remote"]:
        lines.append("It only runs here: it has no `remote = true`.")
    elif document["runs_here"]:
        lines.append(f"It only runs here: it has `{document['runs_here'][0]}`.")
    elif not refused:
        lines.append("Only what the server does not have yet is sent.")
    return "".join(f"{visible_line(line)}\n" for line in lines)


def _first(lines: list[str], what: str) -> list[str]:
    more = len(lines) - _MOST_NAMED
    return [*lines[:_MOST_NAMED], *([f"  and {more} {what}"] if more > 0 else [])]


def _size(size: float) -> str:
    for unit in ("bytes", "KiB", "MiB"):
        if size < 1024:  # noqa: PLR2004 - of one in the next
            return f"{size:.0f} {unit}" if unit == "bytes" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} GiB"
