"""Which files are sent for a gate, and which of them cannot be sent."""

from __future__ import annotations

import os
import stat

from gitgates.core.clean import visible_line
from gitgates.core.errors import GitgatesError
from gitgates.engine.plan.match import select
from gitgates.engine.reuse.visible_content import VisibleContent, digest
from gitgates.git.repo import find_repo, without_git
from gitgates.git.secret_files import is_secret_variable, secret_named
from gitgates.store.files import link_out

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Mapping, Sequence

    from gitgates.core.types import Gate
    from gitgates.engine.reuse.visible_content import FileState
    from gitgates.git.repo import Git, Repo

_MOST_BYTES = 1 << 30  # hashed in one run
_MOST_NAMED = 3
# Not sent from ignored folders: what programs rewrite whenever they run, and repositories.
_LEFT_OUT = ("__pycache__", ".git")
_PACKAGES = {"node_modules", "site-packages"}  # published, with keys for their own tests
_NOT_SECRET = (
    "Leave it out of the gate's `inputs`; or, if it may be sent, list it in `not_secret` of "
    "[tool.gitgates.remote]."
)
_NOT_IGNORED = "Leave it out of `ignored_inputs`: what git does not ignore is sent anyway."


class InputsError(GitgatesError):
    """A gate cannot run on another machine, because of a file or variable that it needs."""

    what = ""  # what secret a file seems to contain, if that is the reason

    @classmethod
    def of_secret(cls, path: str, what: str) -> InputsError:
        """Return the error for a file that looks like a secret."""
        error = cls(f"`{visible_line(path)}` seems to contain {what}, and is not sent", _NOT_SECRET)
        error.what = what
        return error

    @classmethod
    def of_ignored(cls, path: str) -> InputsError:
        """Return the error for a file that is passed to the gate, but that git ignores."""
        text = f"`{visible_line(path)}` is passed to the gate, but not sent, because git ignores it"
        return cls(text, "The gate can name it in `ignored_inputs`.")

    @classmethod
    def of_problems(cls, problems: Sequence[InputsError]) -> InputsError:
        """Return one error for several problems."""
        texts = [problem.message for problem in problems[:_MOST_NAMED]]
        more = len(problems) - len(texts)
        return cls("; ".join([*texts, *([f"and {more} more"] if more else [])]), problems[0].hint)


def secret_variables(gate: Gate, env: Mapping[str, str]) -> list[InputsError]:
    """Return a problem for each variable that looks like a secret and that only a `*` matches."""
    named = {*gate.reuse.env_inputs, *(name for name, _value in gate.program.env)}
    refused = [
        name for name, value in env.items() if is_secret_variable(name, value) and name not in named
    ]
    hint = "Name it in full in `env_inputs` if it must be sent."
    return [
        InputsError(f"the variable `{name}` looks like a secret, and is not sent", hint)
        for name in refused
    ]


class Inputs:
    """The files that are sent for a gate, and all problems with them.

    The arguments are those of `input_root`. Raises: GitgatesError, OSError if they cannot be read.
    """

    def __init__(
        self,
        repo: Repo,
        root_abs: str,
        patterns: tuple[str, ...],
        more: Sequence[str],
        *,
        paths: Sequence[str] = (),
        not_secret: tuple[str, ...] = (),
    ) -> None:
        is_checkout = os.path.realpath(root_abs) != os.path.realpath(repo.root_abs)
        checkout = find_repo(root_abs, without_git(repo.env)) if is_checkout else None
        content = VisibleContent(repo, checkout, most_bytes=_MOST_BYTES)
        # Path → the folder that it is relative to, and the state of the file.
        self.files: dict[str, tuple[str, FileState]] = {}
        self.targets: dict[str, str] = {}  # of links
        self.absolute_links: list[str] = []
        self.problems: list[InputsError] = []
        self.ignored: set[str] = set()  # paths of files that git ignores
        self._add(root_abs, content.states, self._selected(content, patterns))
        self._add(root_abs, content.states, (path for path in paths if path in content.states))
        self._find_links(root_abs)
        for path in more:
            if path in content.states:
                self._add(root_abs, content.states, (path,))
            else:
                self._add_ignored(repo, path.rstrip("/"), content.states)
        self.expected: set[str] = set()  # absolute paths of files that may look like secrets
        self._find_secrets(not_secret)

    def _selected(self, content: VisibleContent, patterns: tuple[str, ...]) -> Iterable[str]:
        if not patterns:
            return content.states
        for pattern in patterns:
            if not (pattern.startswith("!") or content.select((pattern,))):
                # A misspelt pattern would leave out the files that it should match.
                self._refuse(f"no file matches `{visible_line(pattern)}` of `inputs`")
        selected = content.select(patterns)
        if not (selected or self.problems):  # such as those of `!docs/` alone
            self._refuse("no file matches `inputs`")
        return selected

    def _add(self, place_abs: str, states: dict[str, FileState], paths: Iterable[str]) -> None:
        for path in paths:
            state = states[path]
            self.files[path] = place_abs, state
            mode = state[0][0]
            if not path.isascii() and not _is_utf8(path):
                self._refuse(f"the name `{visible_line(path)}` is not UTF-8, as the API requires")
                del self.files[path]
            elif stat.S_ISLNK(mode):
                self._add_link(place_abs, path)
            elif not stat.S_ISREG(mode):
                self._refuse(f"`{visible_line(path)}` is neither a file nor a link")

    def _add_link(self, place_abs: str, path: str) -> None:
        path_abs = f"{place_abs}/{path}"
        target = os.readlink(path_abs)
        is_absolute, is_ignored = target.startswith("/"), path in self.ignored
        if not _is_utf8(target):
            self._refuse(f"the link `{visible_line(path)}` leads to a name that is not UTF-8")
        elif is_absolute and is_ignored:
            self.absolute_links.append(path)  # such as to the interpreter of a virtual environment
        elif is_absolute or (
            _is_out(path, target) if is_ignored else link_out(path_abs, place_abs)
        ):
            text = visible_line(target)
            where = "an absolute path" if is_absolute else "a place outside the repository"
            self._refuse(f"the link `{visible_line(path)}` leads to {where}, {text}")
        # The API wants neither `//` nor `/./`.
        first, *rest = target.split("/")
        self.targets[path] = "/".join([first, *(part for part in rest if part not in ("", "."))])

    def _add_ignored(self, repo: Repo, path: str, others: Container[str]) -> None:
        if not os.path.exists(f"{repo.root_abs}/{path}"):
            self._refuse(f"there is no `{visible_line(path)}`", "Install it first.")
            return
        states = IgnoredContent(repo, path).states
        # A file that git does not ignore is sent as the gate sees it, not as the user has it.
        users: Container[str] = ()
        if not repo.git.ignored((path,)):  # also if it cannot tell: in a submodule
            users = VisibleContent(repo, None, most_bytes=_MOST_BYTES).states
        ignored = [each for each in states if each not in others and each not in users]
        if states and not ignored:
            self._refuse(f"git ignores nothing in `{visible_line(path)}`", _NOT_IGNORED)
        self.ignored.update(ignored)
        self._add(repo.root_abs, states, ignored)

    def _find_links(self, root_abs: str) -> None:
        """Refuse files below a link: git still tracks them if the link replaced their folder."""
        seen = {""}
        for path in self.files:
            folder = path.rpartition("/")[0]
            while folder not in seen:
                seen.add(folder)
                if os.path.islink(f"{root_abs}/{folder}"):
                    self._refuse(f"`{visible_line(folder)}` is a link, and git has files below it")
                folder = folder.rpartition("/")[0]

    def _find_secrets(self, not_secret: tuple[str, ...]) -> None:
        by_name = [path for path in self.files if secret_named(path)]
        expected = {path for path in self.ignored if not _PACKAGES.isdisjoint(path.split("/"))}
        if not_secret:
            expected.update(select(tuple(self.files), not_secret, ()))
        if expected:
            self.expected = {f"{self.files[path][0]}/{path}" for path in expected}
            by_name = [path for path in by_name if path not in expected]
        self.problems += [InputsError.of_secret(path, secret_named(path)) for path in by_name]

    def _refuse(self, why: str, hint: str = "") -> None:
        hint = hint or "Leave it out of the gate's `inputs`, or run the gate here."
        self.problems.append(InputsError(why, hint))


class IgnoredContent(VisibleContent):
    """A file or folder that git ignores, in the user's working tree."""

    def __init__(self, repo: Repo, path: str) -> None:
        super().__init__(repo, None, most_bytes=_MOST_BYTES)
        self._path = path = path.rstrip("/")
        self._cache_abs = f"{repo.state_abs}/content-{digest(path)[:16]}.cache"

    @property
    def identity(self) -> str:
        """A digest of the content. Raises: GitgatesError, OSError."""
        return self.identity_of(self.states)

    def _paths(self, git: Git) -> Iterable[str]:  # noqa: ARG002 - git ignores them
        top_abs = f"{self._root_abs}/{self._path}"
        if not os.path.isdir(top_abs):
            yield self._path
        for folder_abs, folders, names in os.walk(top_abs):
            folders[:] = [name for name in folders if name not in _LEFT_OUT]
            links = [name for name in folders if os.path.islink(f"{folder_abs}/{name}")]
            for name in (*names, *links):
                yield f"{folder_abs}/{name}"[len(self._root_abs) + 1 :]


def _is_out(path: str, target: str) -> bool:
    """Return whether the target of a link is outside, without following links in the target."""
    return os.path.normpath(os.path.join(os.path.dirname(path), target)).split("/")[0] == ".."


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
