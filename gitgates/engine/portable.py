"""What a gate is on any machine: its definition, its programs and packages, without local paths.

Loaded only where signed passes are made or believed. Programs are identified by their bytes, not by
`stat`; marks replace the root, a virtual environment and the home folder in texts, so that two
machines with the same tools have the same digests. If this is too strict, a gate runs once more.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
import time

from gitgates.core.environ import is_ci
from gitgates.core.record import Record
from gitgates.engine.command import gate_env, make_commands, with_hook
from gitgates.engine.surroundings import surroundings
from gitgates.engine.tools import ToolError, identity, linked_folder
from gitgates.git.repo import nul_split
from gitgates.hosts import is_called_by_agent
from gitgates.proc.call import argument_limit
from gitgates.store.files import (
    make_folder,
    open_regular,
    read_cached,
    read_or_empty,
    replace_cached,
)
from gitgates.store.proofs import FOLDER, definition

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import TypeAlias

    from gitgates.core.types import Command, Event, Gate, Plan, Step
    from gitgates.git.repo import Repo

    Facts: TypeAlias = tuple[int, int, int, int, int]  # device, inode, size, mtime, ctime

_VERSION = "gitgates 1"
_CACHE = "digests"  # path → what `stat` said, and the digest; for all worktrees
_CACHE_VERSION = 1
_MOST_CACHED = 5000
_CHUNK_BYTES = 1 << 20
_TICK_NS = 1_000_000_000  # of the clock of any file system
_HEAD_BYTES = 512
_HEAD_LINES = 3  # of a script, in which an installer writes where its interpreter is
_ROOT, _VENV, _HOME = b"{root}", b"{venv}", b"{home}"
# What installers write about themselves, or about where a package came from.
_INSTALLERS = (b"INSTALLER", b"REQUESTED", b"direct_url.json", b"uv_cache.json", b"RECORD")
_IMPORTS = ("PYTHONPATH", "PYTHONHOME", "NODE_PATH")  # variables that name such folders
_LEADS = (".pth", ".egg-link")  # files that name folders to import from
_EDITABLE = "__editable__"
_ABSOLUTE = re.compile(r"""['"]/\w""")  # a path in a text of Python
# A script of these loads unknown files, if it is installed for all projects.
_LOADERS = ("bun", "deno", "lua", "node", "perl", "php", "ruby")
_NPM_LINK = re.compile(rb'"resolved": "((?:\.\./|/)[^"]*)"')
_NODE_LAUNCHER = re.compile(r"/node_modules/(corepack|npm|pnpm|yarn)/")  # of what is in the root


class FoundPass(Record):
    """A pass that somebody trusted has signed."""

    signer: str  # the identity
    time_s: float  # when the gate ran, since the epoch


def digest(*parts: bytes | str) -> str:
    """Return the SHA-256 of some texts, in this order, as hex digits."""
    texts = [
        part.encode("utf-8", "surrogateescape") if isinstance(part, str) else part for part in parts
    ]
    return hashlib.sha256(b"".join(b"%d:%b" % (len(text), text) for text in texts)).hexdigest()


def definition_sha256(gate: Gate) -> str:
    """Return a digest of what decides how a gate ends on a content, the same on any machine."""
    return digest(_VERSION, ascii(definition(gate)))


def tools_of(plan: Plan, repo: Repo, why_not: dict[str, str] | None = None) -> dict[str, str]:
    """Return gate → a digest of its programs, packages and variables, the same on any machine.

    It includes the files elsewhere that the gate reads, but no programs of the repository, which
    are in the tree. A gate whose programs are not known is missing; `why_not` gets the reason.
    """
    described = Description(repo)
    tracked: set[str] = set()

    def program(program_abs: str) -> str:
        if path := described.path_in_root(program_abs):
            if not tracked:
                tracked.update(nul_split(repo.git.ask("ls-files", "-z").stdout))
            if path in tracked:
                return path
        return described.program(program_abs)

    commands_of, tools = commands_for(plan, repo), {}
    for step in plan.steps:
        if step.fault or step.skip:
            continue
        try:
            command = commands_of(step._replace(paths=()))[0]
            lines = identity(
                command, repo.root_abs, program, known=described.packages, file=described.file
            )
            lines += surroundings(step.gate, command, repo, by=described)
        except (ToolError, OSError) as error:
            if why_not is not None:
                why_not[step.gate.name] = str(error)
            continue
        # Which environment is active makes no difference: the other lines have its packages.
        lines = [line for line in lines if not line.startswith("VIRTUAL_ENV=")]
        tools[step.gate.name] = digest(_VERSION, described.platform, *lines)
    described.keep()
    return tools


def maker_of(event: Event, env: Mapping[str, str]) -> str:
    """Return who makes the passes of an event, as in a Proof."""
    if event.payload or is_called_by_agent(env):
        return "agent"
    return "ci" if is_ci(env) else ""


def commands_for(plan: Plan, repo: Repo) -> Callable[[Step], list[Command]]:
    """Return a function that makes the commands of a step as a run would."""
    hook_env = with_hook(repo.env, plan.event.name, repo.git_dir_abs)

    def commands_of(step: Step) -> list[Command]:
        env = gate_env(
            hook_env,
            plan.event,
            step.gate,
            git_dir_abs="" if repo.found_by_folder else repo.git_dir_abs,
            root_abs=repo.root_abs,
        )
        limit = argument_limit(env)
        return make_commands(
            step, plan.event, root_abs=repo.root_abs, env=env, stdin_abs="", limit=limit
        )

    return commands_of


class Description:
    """Describes files and texts of this machine as they would be on any other.

    `checkout`: a private checkout, whose paths are described as those of the root.
    """

    def __init__(self, repo: Repo, checkout: Repo | None = None) -> None:
        folders = [each.root_abs for each in (checkout, repo) if each]
        self._roots = list(dict.fromkeys([*folders, *map(os.path.realpath, folders)]))
        self._root_abs, self._home = repo.root_abs, repo.env.get("HOME", "").rstrip("/")
        self._cache_abs = f"{repo.shared_state_abs}/{FOLDER}/{_CACHE}"
        self._known: dict[str, tuple[Facts, str]] = {}
        known = read_cached(self._cache_abs)
        if known and known[0] == _CACHE_VERSION:  # of another, it may have other parts
            _version, self._known = known
        self._news: dict[str, tuple[Facts, str]] = {}
        self._environments: dict[str, str] = {}  # folder → the virtual environment that it is in
        self.packages: dict[str, list[str]] = {}  # by environment, as long as nothing has run

    @property
    def platform(self) -> str:
        """The system, the architecture, and the C library where it says its version."""
        system = os.uname()
        try:
            libc = os.confstr("CS_GNU_LIBC_VERSION") or ""
        except (ValueError, OSError):
            libc = ""
        return " ".join(filter(None, (system.sysname, system.machine, libc)))

    def path_in_root(self, path_abs: str) -> str:
        """Return the path of a file of the repository; empty if it is of none, or installed."""
        if self._environment_of(path_abs) or "/node_modules/" in path_abs:
            return ""
        inside = [root for root in self._roots if path_abs.startswith(f"{root}/")]
        return os.path.relpath(path_abs, inside[0]) if inside else ""

    def text(self, text: str) -> str:
        """Return an argument with marks for the folders of this machine."""
        venv_abs = self._environment_of(text) if text.startswith("/") else ""
        return os.fsdecode(self._marked(os.fsencode(text), venv_abs))

    def variable(self, name: str, value: str | None, *, is_named: bool) -> str | None:
        """Return the value of a variable with such marks; `is_named`: the gate names it.

        Raises: ToolError if packages are imported from a folder outside of the repository.
        """
        if value is None:
            return None
        is_venv = name == "VIRTUAL_ENV" and os.path.exists(f"{value}/pyvenv.cfg")
        venv_abs = value if is_venv else ""
        marked = self._marked(os.fsencode(value), venv_abs)
        if name in _IMPORTS and any(part[:1] == b"/" for part in marked.split(b":")):
            raise ToolError(f"{name} leads to a folder outside of the repository")
        if is_named and self._home:
            marked = _replaced(marked, os.fsencode(self._home), _HOME)
        return os.fsdecode(marked)

    def patterns(self, path_abs: str) -> str:
        """Return the patterns in a file of git's, without comments."""
        lines = os.fsdecode(read_or_empty(path_abs)).splitlines()
        return repr([line for line in lines if line and not line.startswith("#")])

    def program(self, path_abs: str) -> str:
        """Return a line about a program; of Python also about its library.

        Raises: ToolError, OSError if that is not known.
        """
        folder_abs, name = os.path.split(path_abs)
        lines = [self.file(path_abs)]
        is_in_root = any(path_abs.startswith(f"{root}/") for root in self._roots)
        if not (is_in_root or _NODE_LAUNCHER.search(path_abs)) and _loader(path_abs):
            raise ToolError(f"it is not known which files {path_abs} loads")
        if name.startswith("python"):
            prefix_abs = os.path.dirname(folder_abs)
            libraries = [f"{prefix_abs}/lib/{each}" for each in _names(f"{prefix_abs}/lib")]
            libraries = [each for each in libraries if "/libpython" in each]
            lines += [self.file(each) for each in (*libraries, f"{prefix_abs}/Python")]
        return "\n".join(lines)

    def file(self, path_abs: str, place: str = "") -> str:
        """Return a line about a file by its content, or about all below a folder.

        `place`: where it is, in that line. Raises: ToolError, OSError if that is not known.
        """
        place = place or self._place(path_abs)
        try:
            now = os.stat(path_abs)
        except OSError:
            folder_abs, name = os.path.split(path_abs)
            # Packages of a distribution have no RECORD.
            metadata_abs = f"{folder_abs}/METADATA"
            has_other = name == "RECORD" and os.path.exists(metadata_abs)
            return self.file(metadata_abs) if has_other else f"{place} -"
        if stat.S_ISDIR(now.st_mode):
            paths = {f"{path_abs}/{name}": f"{place}/{name}" for name in _names(path_abs)}
            lines = [
                f"{its_place} {to}" if (to := linked_folder(each)) else self.file(each, its_place)
                for each, its_place in paths.items()
            ]
            return "\n".join([place, *lines])
        if path_abs.endswith("/.modules.yaml"):  # of pnpm; it has the time of the installation
            if not os.path.exists(f"{os.path.dirname(path_abs)}/.pnpm/lock.yaml"):
                raise ToolError("it is not known what pnpm has installed")
            return place
        if path_abs.endswith("/node_modules/.package-lock.json"):  # of npm
            self._require_links_inside(path_abs)
        facts = (now.st_dev, now.st_ino, now.st_size, now.st_mtime_ns, now.st_ctime_ns)
        return f"{place} {self._digest(path_abs, facts)}"

    def keep(self) -> None:
        """Keep the digests for the next run."""
        if not self._news:
            return
        newest = dict([*self._known.items(), *self._news.items()][-_MOST_CACHED:])
        self._known, self._news = newest, {}
        try:
            make_folder(os.path.dirname(self._cache_abs))
            replace_cached(self._cache_abs, (_CACHE_VERSION, newest), sync=False)
        except OSError:
            return  # they are read again

    def _digest(self, path_abs: str, facts: Facts) -> str:
        # What has a mark in it differs by worktree.
        marked = f"{path_abs}\0{self._root_abs}\0{self._home}"
        for digests in (self._known, self._news):
            for key in (path_abs, marked):
                if key in digests and digests[key][0] == facts:
                    return digests[key][1]
        began_ns = time.time_ns()
        hashed = hashlib.sha256()
        with open(path_abs, "rb", buffering=0, opener=open_regular) as file:
            chunk = file.read(_CHUNK_BYTES)
            name = os.path.basename(path_abs)
            is_text = chunk.startswith(b"#!") or name == "RECORD" or _leads(name)
            if is_text:
                chunk = self._without_places(path_abs, chunk + file.read())
            while chunk:
                hashed.update(chunk)
                chunk = b"" if is_text else file.read(_CHUNK_BYTES)
        entry = facts, hashed.hexdigest()
        if facts[-1] < began_ns - _TICK_NS:  # else it may be written again, and look the same
            self._news[marked if is_text else path_abs] = entry
        return entry[1]

    def _without_places(self, path_abs: str, content: bytes) -> bytes:
        """Return the content of a text without the folders of this machine."""
        name, venv_abs = os.path.basename(path_abs), self._environment_of(path_abs)
        if name == "RECORD":
            site_abs = os.path.dirname(os.path.dirname(path_abs))
            return b"\n".join(sorted(self._installed(site_abs, content)))
        if _leads(name):
            marked = self._marked(content, venv_abs)
            site_abs = os.path.dirname(path_abs)
            if any(self._leads_out(line, site_abs) for line in os.fsdecode(marked).splitlines()):
                raise ToolError(f"{path_abs} leads to a folder outside of the repository")
            return marked
        lines = content.split(b"\n", _HEAD_LINES)
        head = self._marked(b"\n".join(lines[:_HEAD_LINES]), venv_abs)
        head = _replaced(head, os.fsencode(self._home), _HOME) if self._home else head
        return b"\n".join((head, *lines[_HEAD_LINES:]))

    def _installed(self, site_abs: str, record: bytes) -> Iterator[bytes]:
        """Yield the lines of a RECORD about what is the same in each environment."""
        for line in record.splitlines():
            path, hashed = (*line.rsplit(b",", 2), b"", b"")[:2]
            name = os.path.basename(path)
            if name == b"direct_url.json":
                self._require_inside(os.path.join(site_abs, os.fsdecode(path)))
            if name in _INSTALLERS or path.endswith(b".pyc"):
                continue
            file_abs = os.path.join(site_abs, os.fsdecode(path))
            if path.startswith(b"../") and _is_script(file_abs):
                continue  # with the place of the interpreter in it
            if not hashed and os.path.isdir(file_abs):
                continue  # this file may be in it
            if not hashed or _leads(os.fsdecode(name)):
                yield os.fsencode(self.file(file_abs))
            else:
                yield line

    def _require_inside(self, direct_url_abs: str) -> None:
        """Raise ToolError where a package is installed as editable from outside, see PEP 610."""
        content = self._marked(read_or_empty(direct_url_abs)).replace(b" ", b"")
        if b'"editable":true' in content and b'"file://' + _ROOT not in content:
            raise ToolError(f"{direct_url_abs} leads to a folder outside of the repository")

    def _require_links_inside(self, lock_abs: str) -> None:
        """Raise ToolError where `npm link` has made a link to a folder outside."""
        project_abs = os.path.dirname(os.path.dirname(lock_abs))
        for match in _NPM_LINK.finditer(read_or_empty(lock_abs)):
            linked_abs = os.path.normpath(os.path.join(project_abs, os.fsdecode(match[1])))
            if not any(linked_abs.startswith(f"{root}/") for root in self._roots):
                raise ToolError(f"{lock_abs} leads to a folder outside of the repository")

    def _leads_out(self, line: str, site_abs: str) -> bool:
        """Return whether a line names a folder whose files are neither content nor a package."""
        # Of a module that finds what is installed as editable.
        if _ABSOLUTE.search(line):
            return True
        path = line.strip()
        if not path or path.startswith(("#", "import ", "import\t", "{")):
            return False
        place_abs = os.path.normpath(os.path.join(site_abs, path))
        inside = [*self._roots, self._environment_of(site_abs) or site_abs]
        return not any(f"{place_abs}/".startswith(f"{folder}/") for folder in inside)

    def _marked(self, content: bytes, venv_abs: str = "") -> bytes:
        marks = [(root, _ROOT) for root in self._roots]
        marks += [(place, _VENV) for place in {venv_abs, os.path.realpath(venv_abs)} if venv_abs]
        for place, mark in sorted(marks, key=lambda pair: -len(pair[0])):
            content = _replaced(content, os.fsencode(place), mark)
        return content

    def _place(self, path_abs: str) -> str:
        """Return where a file is: in an environment, in the root, or else its name and folder's."""
        if venv_abs := self._environment_of(path_abs):
            return f"{os.fsdecode(_VENV)}/{os.path.relpath(path_abs, venv_abs)}"
        for root in self._roots:
            if path_abs.startswith(f"{root}/"):
                return os.path.relpath(path_abs, root)
        return "/".join(path_abs.split("/")[-2:])

    def _environment_of(self, path_abs: str) -> str:
        """Return the virtual environment that a file is in; empty if it is in none."""
        folder_abs = os.path.dirname(path_abs)
        if folder_abs not in self._environments:
            is_one = os.path.exists(f"{folder_abs}/pyvenv.cfg")
            above = "" if folder_abs in ("/", "") else self._environment_of(folder_abs)
            self._environments[folder_abs] = folder_abs if is_one else above
        return self._environments[folder_abs]


def _leads(name: str) -> bool:
    return name.endswith(_LEADS) or name.startswith(_EDITABLE)


def _loader(path_abs: str) -> bool:
    """Return whether a program is a script of a language whose packages are not described."""
    try:
        with open(path_abs, "rb", buffering=0, opener=open_regular) as file:
            line = os.fsdecode(file.read(_HEAD_BYTES).partition(b"\n")[0])
    except OSError:
        return False
    words = [os.path.basename(word) for word in line.removeprefix("#!").split()]
    return line.startswith("#!") and any(word.startswith(_LOADERS) for word in words)


def _is_script(path_abs: str) -> bool:
    """Return whether a file is a script, or gone."""
    try:
        with open(path_abs, "rb", buffering=0, opener=open_regular) as file:
            return file.read(2) == b"#!"
    except OSError:
        return True


def _replaced(content: bytes, place: bytes, mark: bytes) -> bytes:
    """Replace a folder, but not one whose name only begins like it."""
    first, *rest = content.split(place)
    parts = [first]
    for part in rest:
        follows = part[:1]
        parts += [place if follows.isalnum() or follows in (b"-", b"_", b".") else mark, part]
    return b"".join(parts)


def _names(folder_abs: str) -> list[str]:
    try:
        return sorted(os.listdir(folder_abs))
    except OSError:
        return []
