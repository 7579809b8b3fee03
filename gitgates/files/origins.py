"""What existed before an author changed anything: in commits, on branches, in stashes."""

from __future__ import annotations

from gitgates.core.errors import StateError
from gitgates.files.memory import Memory
from gitgates.files.points import State, state_of
from gitgates.files.versions import contents_after, new_contents
from gitgates.git.object_store import reading_git

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from gitgates.files.points import Point
    from gitgates.files.versions import Changes, Content
    from gitgates.git.repo import Git, Repo

_MOST_COMMITS = 1000
_MOST_TIPS = 50
_MOST_BRANCHES = 500
_MOST_ASKED = 100_000  # files on branches: a second or two of git
_CLOCK_S = 2  # that git's clock, in whole seconds, may be behind ours, or be set back


class Older:
    """The stashes that existed at a point, and the branches, if these count, too."""

    def __init__(self, repo: Repo, point: Point, *, branches: bool) -> None:
        self._git, state = Memory(repo).reading, _state(repo, point)
        stashes = [tip for commit, _message in state.stash for tip in (commit, f"{commit}^3")]
        heads = (point.head, *state.refs.values()) if branches else ()
        tips = dict.fromkeys((*heads, *stashes))
        self._tips = [tip for tip in tips if tip][:_MOST_TIPS]

    def of(self, contents: Collection[Content]) -> set[Content]:
        """Return which versions of files were there; of many files, only the first tips count."""
        most = _MOST_ASKED // max(len(contents), 1)
        return found_at(self._git, self._tips[:most], contents)


def on_branches(repo: Repo, point: Point, contents: Collection[Content]) -> set[Content]:
    """Return which versions of files are on a branch at a point; missing files count as such.

    If there are too many to ask about, all are.
    """
    tips = {*_state(repo, point).refs.values()}
    if len(tips) > _MOST_BRANCHES or len(tips) * len(contents) > _MOST_ASKED:
        return {*contents}
    removals = {content for content in contents if content[1] is None}
    return removals | found_at(Memory(repo).reading, tips, contents)


def in_tree(repo: Repo, tree: str, by_path: Changes) -> set[str]:
    """Return the files that are in a tree as they are after their changes.

    Raises: GitError if the tree does not exist.
    """
    git = reading_git(repo)
    git.out("cat-file", "-e", f"{tree}^{{tree}}")
    return {path for path, _version in found_at(git, [tree], new_contents(by_path))}


def _state(repo: Repo, point: Point) -> State:
    try:
        return state_of(repo, point)
    except StateError:
        return State()


def found_at(git: Git, tips: Iterable[str], contents: Iterable[Content]) -> set[Content]:
    """Return which versions of files are in one of these commits or trees.

    Git reads names one per line: a name with line ends is in none. Raises: GitError.
    """
    asked = [
        (tip, content)
        for content in contents
        if content[1] is not None and "\n" not in content[0]
        for tip in tips
    ]
    if not asked:
        return set()
    names = "".join(f"{tip}:{path}\n" for tip, (path, _version) in asked)
    stdin = names.encode("utf-8", "surrogateescape")
    answer = git.out("cat-file", "--batch-check=%(objectname)", "--buffer", stdin=stdin)
    return {
        content
        for (_tip, content), blob in zip(
            asked, answer.decode("utf-8", "replace").splitlines(), strict=True
        )
        if content[1] is not None and content[1].blob == blob
    }


def brought(repo: Repo, before: Point, point: Point, began_s: float | None) -> set[Content]:
    """Return the files that commits have brought which existed before, with their versions.

    Those since `began_s` existed only if they are on a remote. None: since the point before.
    """
    git = Memory(repo).reading
    contents: set[Content] = set()
    if not point.head or point.head == before.head:
        return contents
    tips, picked = _old_commits(repo, before, point, began_s)
    for tip in tips[:_MOST_TIPS]:
        base = before.head
        if base and _is_ancestor(git, base, point.head):
            base = git.ask("merge-base", base, tip).stdout.decode().split("\n")[0]
        contents |= contents_after(git, base or "--root", tip)
    for commit in picked:
        contents |= contents_after(git, "--root", commit)
    return contents


def _is_ancestor(git: Git, base: str, tip: str) -> bool:
    return not git.ask("merge-base", "--is-ancestor", base, tip).exit_status


def _old_commits(
    repo: Repo, before: Point, point: Point, began_s: float | None
) -> tuple[list[str], list[str]]:
    """Return the newest commits of HEAD that existed before; and those that repeat an older one."""
    git = Memory(repo).reading
    ask = ("rev-list", "--no-commit-header", "--format=%H %ct %at %P")
    bounds = [point.head, *([f"^{before.head}"] if before.head else [])]
    log = git.ask(*ask, f"--max-count={_MOST_COMMITS}", *bounds, "--")
    now_s = int(before.time_s) - _CLOCK_S
    since = now_s if began_s is None else min(now_s, int(began_s) - _CLOCK_S)
    commits = [line.split(" ") for line in log.stdout.decode().splitlines()]
    recent = [commit for commit, committed, *_rest in commits if since <= int(committed) < now_s]
    pushed = _pushed(repo, recent) if recent else set[str]()
    made, parents = set[str](), set[str]()
    picked, other_commits = list[str](), list[str]()
    for commit, committed, written, *above in commits:
        if int(committed) < since or commit in pushed:
            other_commits.append(commit)
            continue
        made.add(commit)
        parents.update(above)
        if int(written) < since:
            picked.append(commit)
    old = [commit for commit in other_commits if commit in parents] + [
        *(parents - made - {*other_commits})
    ]
    if point.head not in made:
        old = [point.head]
    # An amended commit, or one that was rebased, has its own work in it.
    is_on_top = before.head and _is_ancestor(git, before.head, point.head)
    return [commit for commit in old if commit != before.head], picked if is_on_top else []


def _pushed(repo: Repo, commits: Collection[str]) -> set[str]:
    """Return which commits are on a remote, as far as this repository knows."""
    stdin = "".join(f"{commit}\n" for commit in commits).encode()
    ask = ("rev-list", "--ignore-missing", "--not", "--remotes", "--not", "--stdin")
    return {*commits} - {*repo.git.ask(*ask, stdin=stdin).stdout.decode().split()}
