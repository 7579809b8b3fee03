"""The identity of the programs that a command starts: earlier results count while it is the same.

Files are told apart by device, inode, size, mtime and ctime, compared for equality: an older
version that is put in place of a newer one is another file. What a script or a launcher starts is
found by its `#!` line; the packages that a Python or Node.js program imports, by what package
managers leave: the RECORD of each distribution, and the lock file within `node_modules`.
"""

from __future__ import annotations

import os
import stat

from gitgates.core.errors import GitgatesError
from gitgates.proc.call import which
from gitgates.store.files import read_or_empty

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from gitgates.core.types import Command

_MOST_INTERPRETERS = 4  # a script of a script of …
_HEAD_BYTES = 512  # of a script: longer than the kernel reads of a `#!` line
_VENVS = (".venv", "venv")
_SYSTEM_PACKAGES = b"include-system-site-packages=true"  # in pyvenv.cfg
# They start a program of an environment that they find or make, and of no other.
_PYTHON_LAUNCHERS = frozenset(("uv", "poetry", "pdm", "pipenv", "rye"))
_NODE_LAUNCHERS = frozenset(("npx", "bun", "bunx", "pnpm", "yarn"))
_NOT_INSTALLED = "what a launcher of Node.js starts is not in `node_modules`"
_FETCHERS = frozenset(("npx", "bunx"))  # what is not installed
# Variables that tell poetry to keep its environments somewhere else.
_ELSEWHERE = ("POETRY_VIRTUALENVS", "POETRY_CACHE", "XDG_CACHE")
_LAUNCHERS = _PYTHON_LAUNCHERS | _NODE_LAUNCHERS
# They start one of several versions, by rules of their own.
CHOOSERS = frozenset(("asdf", "hatch", "mise", "pipx", "pyenv", "uvx", "volta", "volta-shim"))
# Written by npm, pnpm and yarn when they have installed.
_NODE = (
    *(".package-lock.json", ".modules.yaml", ".pnpm/lock.yaml"),
    *(".yarn-state.yml", ".yarn-integrity"),
)
# What rustup writes when it updates a toolchain or chooses another one.
_RUSTUP = ("settings.toml", "update-hashes")
_ENDS = str.maketrans(dict.fromkeys(";&|()`", "\n"))  # of one command of a shell
_SEPARATORS = str.maketrans(dict.fromkeys("<>\"'$={},", " "))


class ToolError(GitgatesError):
    """Which program a command starts cannot be told."""


def signature(path_abs: str) -> str:
    """Return a text that changes when the file at a path does, or one anywhere below it.

    It says where there is none.
    """
    try:
        now = os.stat(path_abs)
    except OSError:
        return f"{path_abs} -"
    if stat.S_ISDIR(now.st_mode):
        paths = [f"{path_abs}/{name}" for name in _names(path_abs)]
        lines = [
            f"{path} {to}" if (to := linked_folder(path)) else signature(path) for path in paths
        ]
        return "\n".join([path_abs, *lines])
    place = f"{path_abs} {now.st_dev} {now.st_ino}"
    return f"{place} {now.st_size} {now.st_mtime_ns} {now.st_ctime_ns}"


def linked_folder(path_abs: str) -> str:
    """Return the target of a link to a folder, which may be circular; empty for another file."""
    is_one = os.path.islink(path_abs) and os.path.isdir(path_abs)
    return os.readlink(path_abs) if is_one else ""


def identity(
    command: Command,
    root_abs: str,
    describe: Callable[[str], str],
    *,
    known: dict[str, list[str]] | None = None,
    file: Callable[[str], str] = signature,
) -> list[str]:
    """Return lines that change when a program of a command does, or a package that it may import.

    In a shell command, each word that is a program counts, whatever the shell makes of it.
    `describe` returns such a line about a program, `file` one about what package managers leave,
    as `signature` does; `known` keeps what environments have installed, for the next command.
    Raises: ToolError where a program starts another one that cannot be told.
    """
    env = command.env
    calls = [*_calls(command)]
    words = [word for call in calls for word in call]
    places = _places(calls, command.cwd_abs)
    folders = _folders(places, root_abs)
    own = _own_environments(folders, env, {*map(os.path.basename, words)})
    bins = [f"{place}/bin" for place in own] + [f"{place}/node_modules/.bin" for place in folders]
    launched = {**env, "PATH": os.pathsep.join([*bins, env.get("PATH", os.defpath)])}
    found = dict(_programs(command.argv[0], env, command.cwd_abs))
    for call in calls:
        is_launched, before, is_fetched = False, "", False
        for word in call:
            # `python -m pytest` does not start the program of that name.
            if before != "-m" and not word.startswith("-"):
                its_env = launched if is_launched else env
                programs = [each for place in places for each in _programs(word, its_env, place)]
                if is_fetched and not programs:
                    raise ToolError(_NOT_INSTALLED)
                for path_abs, imports in programs:
                    found[path_abs] = imports or found.get(path_abs, False)
                is_fetched = os.path.basename(word) in _FETCHERS
            is_launched, before = is_launched or os.path.basename(word) in _LAUNCHERS, word
    names = {os.path.basename(name) for name in (*words, *found)}
    if names & _PYTHON_LAUNCHERS and not own:
        raise ToolError("what a launcher of Python starts is in no environment of the project")
    importing = [path_abs for path_abs, imports in found.items() if imports]
    environments = [*own, *_environments(importing, env)]
    node = [
        file(f"{os.path.realpath(f'{folder_abs}/node_modules')}/{name}")
        for folder_abs in folders
        if os.path.isdir(f"{folder_abs}/node_modules")
        for name in _NODE
    ]
    if names & _NODE_LAUNCHERS and all(line.endswith(" -") for line in node):
        raise ToolError(_NOT_INSTALLED)
    installed = {} if known is None else known
    for folder_abs in environments:
        if folder_abs not in installed:
            installed[folder_abs] = [*_packages(folder_abs, file)]
    packages = [
        line for folder_abs in dict.fromkeys(environments) for line in installed[folder_abs]
    ]
    return [*map(describe, found), *packages, *node, *_toolchains(names, env, file)]


def variables(command: Command) -> set[str]:
    """Return the variables that a shell command names, such as `$NAME` and `${NAME:-x}`."""
    names = set()
    for text in _shell_texts(command):
        for part in text.split("$")[1:]:
            name = part.removeprefix("{")
            end = next((at for at, c in enumerate(name) if not (c.isalnum() or c == "_")), None)
            names.add(name[:end])
    return names


def _shell_texts(command: Command) -> list[str]:
    """Return what a shell may interpret: also arguments with spaces, such as that of `sh -c`."""
    return [command.argv[2]] if command.shell else [arg for arg in command.argv if " " in arg]


def _calls(command: Command) -> Iterator[list[str]]:
    """Yield the words of each call in a command."""
    if not command.shell:
        yield [*command.argv]
    env = command.env
    values = {name: env.get(name, "") for name in variables(command)}
    for text in _shell_texts(command):
        filled = text
        for name in sorted(values, key=len, reverse=True):
            filled = filled.replace(f"${{{name}}}", values[name]).replace(f"${name}", values[name])
        for line in filled.translate(_ENDS).split("\n"):
            words = line.translate(_SEPARATORS).split()
            if words:
                home = f"{env.get('HOME', '')}/"
                yield [home + word[2:] if word.startswith("~/") else word for word in words]


def _places(calls: list[list[str]], cwd_abs: str) -> list[str]:
    """Return the folders that a command works in."""
    places = [cwd_abs]
    for call in calls:
        if call[0] == "cd":
            places.append(os.path.normpath(os.path.join(places[-1], *call[1:2])))
    return places


def _programs(word: str, env: Mapping[str, str], cwd_abs: str) -> Iterator[tuple[str, bool]]:
    """Yield the file that a word starts, and the interpreters that run it.

    With each, whether it imports the packages beside it: an interpreter does not that a virtual
    environment starts.
    """
    path_abs = _executable(word, env, cwd_abs)
    for _ in range(_MOST_INTERPRETERS):
        if not path_abs:
            return
        settings = read_or_empty(f"{os.path.dirname(os.path.dirname(path_abs))}/pyvenv.cfg")
        if settings:
            folder_abs, name = os.path.split(path_abs)
            yield f"{os.path.realpath(folder_abs)}/{name}", True
        real_abs = os.path.realpath(path_abs)
        if "/shims/" in path_abs or os.path.basename(real_abs) in CHOOSERS:
            raise ToolError(f"{path_abs} starts one of several programs")
        yield real_abs, not settings or _SYSTEM_PACKAGES in b"".join(settings.lower().split())
        path_abs = _interpreter(real_abs, env, cwd_abs)


def _executable(word: str, env: Mapping[str, str], cwd_abs: str) -> str:
    try:
        path = which(word, env.get("PATH", os.defpath))
    except OSError:
        return ""
    path_abs = os.path.normpath(os.path.join(cwd_abs, path)) if "/" in path else ""
    return (
        path_abs if path_abs and os.path.isfile(path_abs) and os.access(path_abs, os.X_OK) else ""
    )


def _interpreter(path_abs: str, env: Mapping[str, str], cwd_abs: str) -> str:
    try:
        with open(path_abs, "rb", buffering=0) as file:
            head = file.read(_HEAD_BYTES)
    except OSError:
        return ""
    if not head.startswith(b"#!"):
        return ""
    words = os.fsdecode(head[2:].partition(b"\n")[0]).split()
    if words and os.path.basename(words[0]) == "env":
        words = [word for word in words[1:] if not word.startswith("-") and "=" not in word]
    return _executable(words[0], env, cwd_abs) if words else ""


def _folders(places: list[str], root_abs: str) -> list[str]:
    """Return folders and those above them, up to the root, which comes last."""
    folders = {root_abs}
    for place_abs in places:
        folder_abs = place_abs
        while folder_abs.startswith(f"{root_abs}/"):
            folders.add(folder_abs)
            folder_abs = os.path.dirname(folder_abs)
    return sorted(folders, key=lambda folder_abs: (-len(folder_abs), folder_abs))


def _own_environments(folders: list[str], env: Mapping[str, str], words: set[str]) -> list[str]:
    """Return the virtual environments of a project, those that launchers of Python use."""
    places = [f"{folder_abs}/{name}" for folder_abs in folders for name in _VENVS]
    if "uv" in words and (place := env.get("UV_PROJECT_ENVIRONMENT")):
        places = [os.path.join(folder_abs, place) for folder_abs in folders]
    elif env.get("VIRTUAL_ENV"):
        places.append(env["VIRTUAL_ENV"])
    found = [os.path.realpath(place) for place in places if os.path.exists(f"{place}/pyvenv.cfg")]
    return found or ([*_poetry_environments(folders, env)] if "poetry" in words else [])


def _poetry_environments(folders: list[str], env: Mapping[str, str]) -> Iterator[str]:
    """Yield the environments that poetry has made outside of the project, as it does by default."""
    import base64
    import hashlib  # slow to load

    home_abs = env.get("HOME", "")
    settings_abs = (f"{home_abs}/.config/pypoetry/config.toml", f"{folders[-1]}/poetry.toml")
    if any(name.startswith(_ELSEWHERE) for name in env) or any(
        b"path" in read_or_empty(path_abs) for path_abs in settings_abs
    ):
        return
    for cache in (".cache", "Library/Caches"):
        places_abs = f"{home_abs}/{cache}/pypoetry/virtualenvs"
        for folder_abs in folders:
            hashed = hashlib.sha256(os.fsencode(os.path.realpath(folder_abs))).digest()
            mark = f"-{base64.urlsafe_b64encode(hashed).decode()[:8]}-py"
            for name in _names(places_abs):
                if mark in name and os.path.exists(f"{places_abs}/{name}/pyvenv.cfg"):
                    yield f"{places_abs}/{name}"


def _environments(programs: Iterable[str], env: Mapping[str, str]) -> Iterator[str]:
    """Yield the environments whose packages a program may import."""
    for path_abs in programs:
        folder_abs = os.path.dirname(os.path.dirname(path_abs))
        if os.path.exists(f"{folder_abs}/pyvenv.cfg"):
            yield folder_abs
        elif "/bin/python" in path_abs:
            yield from (folder_abs, "/usr/local", f"{env.get('HOME', '')}/.local")


def _toolchains(
    names: set[str], env: Mapping[str, str], file: Callable[[str], str]
) -> Iterator[str]:
    """Yield what tells the toolchains of rustup, whose programs are links to itself."""
    if "rustup" in names:
        home_abs = env.get("RUSTUP_HOME") or f"{env.get('HOME', '')}/.rustup"
        yield from (file(f"{home_abs}/{name}") for name in _RUSTUP)
        yield env.get("RUSTUP_TOOLCHAIN", "")


def _packages(folder_abs: str, file: Callable[[str], str]) -> Iterator[str]:
    """Yield a line about each distribution that is installed in an environment."""
    sites: dict[str, None] = {}
    for lib in ("lib", "lib64", "Lib"):
        for python in _names(f"{folder_abs}/{lib}", "python") or ([""] if lib == "Lib" else []):
            for packages in ("site-packages", "dist-packages"):
                sites[os.path.realpath(os.path.join(folder_abs, lib, python, packages))] = None
    for site_abs in sites:
        yield from _distributions(site_abs, file)


def _distributions(site_abs: str, file: Callable[[str], str]) -> Iterator[str]:
    for name in _names(site_abs):
        if name.endswith(".dist-info"):
            yield file(f"{site_abs}/{name}/RECORD")
        elif name.endswith((".egg-info", ".egg-link", ".pth")):
            yield file(f"{site_abs}/{name}")


def _names(folder_abs: str, prefix: str = "") -> list[str]:
    try:
        names = sorted(os.listdir(folder_abs))
    except OSError:
        return []
    return [name for name in names if name.startswith(prefix)] if prefix else names
