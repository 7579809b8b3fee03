"""The tree of a gate's inputs: what is in it, how it is written, and what is refused."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from conftest import Repo

from gitgates.engine.reuse import visible_content
from gitgates.features.remote.inputs import InputsError
from gitgates.features.remote.protos import message
from gitgates.features.remote.tree import Digest, InputRoot, digest_of, input_root
from gitgates.git.repo import Repo as FoundRepo
from gitgates.git.repo import find_repo
from gitgates.worktree.checkouts import check_out
from gitgates.worktree.setup import WorktreeSettings

KEY = "-----BEGIN EC PRIVATE KEY-----\nMHcCAQEE\n"
FILES = {
    "a.py": "x = 1\n",
    "same.py": "x = 1\n",
    "empty": "",
    "a/b": "b",
    "a-b/c": "sorts before a/",
    "a/é/ü.txt": "ü" * 100,
    "a/deep/er/" + "n" * 200: "a name that is longer than 127 bytes",
    "large": "0123456789abcdef" * 2000,
    "run": "#!/bin/sh\n",
}


def found(repo: Repo) -> FoundRepo:
    return find_repo(str(repo.path), dict(os.environ))


def root_of(repo: Repo, *patterns: str, **options: Any) -> InputRoot:
    return input_root(found(repo), str(repo.path), patterns, **options)


def refused(repo: Repo, *patterns: str, **options: Any) -> str:
    with pytest.raises(InputsError) as caught:
        root_of(repo, *patterns, **options)
    return caught.value.message


@pytest.fixture(name="project")
def _project(repo: Repo) -> Repo:
    for name, text in FILES.items():
        repo.write(name, text)
    (repo.path / "run").chmod(0o755)
    (repo.path / "a/link").symlink_to("../a.py")
    (repo.path / "folder").symlink_to(".//a/./deep")
    (repo.path / "dangling").symlink_to("nowhere")
    repo.commit_all("first")
    return repo


def by_protos(folder: Path, directories: dict[Digest, bytes]) -> Digest:
    """Return the digest of a folder as the compiled protos write it; note what is below."""
    directory = message("Directory")()
    for path in sorted(folder.iterdir()):
        if path.name == ".git":
            continue
        if path.is_symlink():
            target = os.readlink(path).replace("//", "/").replace("/./", "/")
            directory.symlinks.add(name=path.name, target=target)
        elif path.is_dir():
            below = by_protos(path, directories)
            directory.directories.add(name=path.name, digest=below._asdict())
        else:
            digest = digest_of(path.read_bytes())
            is_executable = bool(path.stat().st_mode & 0o100)
            directory.files.add(
                name=path.name, digest=digest._asdict(), is_executable=is_executable
            )
    content = directory.SerializeToString(deterministic=True)
    directories[digest_of(content)] = content
    return digest_of(content)


def reachable(root: InputRoot) -> dict[str, Digest]:
    """Return path → digest of each directory."""
    paths, rest = {}, [("", root.digest)]
    for path, digest in rest:
        paths[path] = digest
        directory = message("Directory").FromString(root.directories[digest])
        rest += [
            (f"{path}/{node.name}", Digest(node.digest.hash, node.digest.size_bytes))
            for node in directory.directories
        ]
    return paths


def test_messages_are_those_of_the_published_protos(project: Repo) -> None:
    expected: dict[Digest, bytes] = {}
    digest = by_protos(project.path, expected)
    root = root_of(project)
    assert root.directories == expected
    assert root.digest == digest
    contents = {digest_of(text.encode()) for text in FILES.values()}
    assert set(root.files) == contents
    assert all(digest_of(root.blob(each)) == each for each in (*contents, *root.directories))


def test_the_same_content_is_the_same_tree_in_another_worktree(project: Repo) -> None:
    project.git("worktree", "add", "-q", "../other")
    other = Repo(project.path.parent / "other")
    assert root_of(other).directories == root_of(project).directories


def test_a_change_of_one_file_changes_the_folders_above_it(project: Repo) -> None:
    before = reachable(root_of(project))
    project.write("a/deep/new.txt", "new")
    after = reachable(root_of(project))
    changed = {path for path, digest in after.items() if before[path] != digest}
    assert changed == {"", "/a", "/a/deep"}
    assert len(after) == len(before) == 6


@pytest.fixture(name="read")
def _read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The files that were opened to hash them."""
    read: list[str] = []
    real: Callable[[str, int], bytes] = vars(visible_content)["_read"]

    def note(path_abs: str, mode: int) -> bytes:
        read.append(path_abs)
        return real(path_abs, mode)

    monkeypatch.setattr(visible_content, "_read", note)
    return read


def test_what_has_not_changed_is_not_read_again(project: Repo, read: list[str]) -> None:
    time.sleep(0.03)  # what was just written is read again
    first = root_of(project)
    assert len(read) == len(FILES) + 3
    read.clear()
    assert root_of(project) == first
    assert read == []
    path = project.write("a.py", "x = 2\n")
    assert root_of(project).digest != first.digest
    assert read == [str(path)]


def test_a_private_checkout_is_read_once(project: Repo, read: list[str]) -> None:
    expected = root_of(project)
    project.write("a.py", "unstaged")
    there = found(project)
    with check_out(there, "HEAD", WorktreeSettings()) as checkout:
        time.sleep(0.03)
        first = input_root(there, checkout.root_abs, ())
        assert first.directories == expected.directories
        assert first.files[digest_of(b"b")] == f"{checkout.root_abs}/a/b"
    read.clear()
    with check_out(there, "HEAD", WorktreeSettings()) as checkout:
        assert input_root(there, checkout.root_abs, ()).digest == first.digest
    assert read == []


def test_the_bytes_are_those_on_disk_not_those_in_git(repo: Repo) -> None:
    repo.write(".gitattributes", "*.txt text eol=crlf\n")
    repo.write("a.txt", "one\r\n")
    repo.commit_all("first")
    assert repo.git("cat-file", "-s", "HEAD:a.txt") == "4"
    assert digest_of(b"one\r\n") in root_of(repo).files


def test_files_of_submodules_are_as_seen(project: Repo, tmp_path: Path) -> None:
    library = Repo.init(tmp_path / "library")
    library.write("lib.py", "y = 1\n")
    library.commit_all("first")
    project.git("-c", "protocol.file.allow=always", "submodule", "add", "-q", str(library.path))
    root = root_of(project)
    assert root.files[digest_of(b"y = 1\n")] == f"{project.path}/library/lib.py"
    directory = message("Directory").FromString(root.directories[reachable(root)["/library"]])
    assert [node.name for node in directory.files] == ["lib.py"]  # not `.git`


def test_inputs_select(project: Repo) -> None:
    assert set(reachable(root_of(project, "a/deep/", "run"))) == {"", "/a", "/a/deep", "/a/deep/er"}
    assert refused(project, "a/", "depe/") == "no file matches `depe/` of `inputs`"
    for nothing in (("!a/",), ("run", "!run")):
        assert refused(project, *nothing) == "no file matches `inputs`"


def test_names_have_to_be_utf8(project: Repo) -> None:
    try:
        (project.path / os.fsdecode(b"caf\xe9")).write_text("x")
    except OSError:
        pytest.skip("the file system has no such names")
    assert refused(project) == r"the name `caf\udce9` is not UTF-8, as the API requires"
    root_of(project, "a/")
    (project.path / "a/link2").symlink_to(os.fsdecode(b"caf\xe9"))
    assert "`a/link2` leads to a name that is not UTF-8" in refused(project, "a/")


@pytest.mark.parametrize(
    ("target", "where"),
    [
        ("/etc/hosts", "an absolute path"),
        ("../../else", "a place outside the repository"),
        ("../.git/config", "a place outside the repository"),
    ],
)
def test_links_do_not_lead_out(project: Repo, target: str, where: str) -> None:
    (project.path / "a/out").symlink_to(target)
    assert refused(project) == f"the link `a/out` leads to {where}, {target}"
    root_of(project, "a.py")


def test_nothing_is_read_through_a_link(project: Repo, tmp_path: Path) -> None:
    project.git("add", ".")
    (project.path / "a/deep").rename(tmp_path / "elsewhere")
    (project.path / "a/deep").symlink_to(tmp_path / "elsewhere")
    assert refused(project, "a/deep/*/*") == "`a/deep` is a link, and git has files below it"


@pytest.mark.parametrize(
    ("name", "text", "what"),
    [
        (".env", "A=1", "variables with secrets"),
        ("web/.env.production", "A=1", "variables with secrets"),
        ("tests/ID_RSA", "", "a private key"),
        ("a.p12", "", "a private key"),
        ("home/.netrc", "", "passwords"),
        ("config/master.key", "", "a key"),
    ],
)
def test_secrets_by_name_are_refused(project: Repo, name: str, text: str, what: str) -> None:
    project.write(name, text)
    assert refused(project) == f"`{name}` seems to contain {what}, and is not sent"
    assert root_of(project, not_secret=(name,)).expected == {f"{project.path}/{name}"}


@pytest.mark.parametrize("name", [".env.example", "environment", "rsa.py", "credentials.py"])
def test_other_names_are_not_refused(project: Repo, name: str) -> None:
    project.write(name, "A=1")
    root_of(project)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        (KEY, "a private key"),
        (f"Bag Attributes\n    name: x\n{KEY}", "a private key"),
        (f"key: |\n  {KEY}", "a private key"),
        (f"\ufeff{KEY}", "a private key"),
        ("AGE-SECRET-KEY-1ABC\n", "a private key"),
        ('{\n  "type": "service_account",\n', "the key of a service account"),
        ('{"type": "service_account"}', "the key of a service account"),
        ("//registry.npmjs.org/:_authToken=npm_abc\n", "the token of a registry"),
    ],
)
def test_secrets_by_head_do_not_leave(project: Repo, text: str, what: str) -> None:
    path = project.write("web/file", text)
    digest = digest_of(text.encode())
    with pytest.raises(InputsError, match=f"web/file` seems to contain {what}, and is not sent"):
        root_of(project).blob(digest)
    assert root_of(project, not_secret=("web/",)).blob(digest) == path.read_bytes()
    # The same where nobody said so.
    project.write("a/other", text)
    with pytest.raises(InputsError, match=f"a/other` seems to contain {what}"):
        root_of(project, not_secret=("web/",)).blob(digest)


@pytest.mark.parametrize(
    "text", [f'KEY = """{KEY}"""', "-----BEGIN PUBLIC KEY-----\n", "//r/:_authToken=${TOKEN}\n"]
)
def test_other_heads_leave(project: Repo, text: str) -> None:
    project.write("web/file", text)
    assert root_of(project).blob(digest_of(text.encode())) == text.encode()


def test_what_changes_before_it_is_sent_is_not_sent(project: Repo) -> None:
    root = root_of(project)
    project.write("a/b", "c")
    with pytest.raises(InputsError, match="a/b` changed before it was sent"):
        root.blob(digest_of(b"b"))


def test_what_git_ignores_is_sent_where_it_is_named(project: Repo) -> None:
    project.write(".gitignore", "node_modules\n.venv\n.cache\n")
    project.write("node_modules/one/index.js", "1")
    project.write("node_modules/one/__pycache__/x.pyc", "pyc")
    (project.path / "node_modules/.bin").mkdir()
    (project.path / "node_modules/.bin/one").symlink_to("../one/index.js")
    (project.path / ".venv/bin").mkdir(parents=True)
    (project.path / ".venv/bin/python").symlink_to(sys.executable)
    (project.path / ".venv/bin/python3").symlink_to("python")
    assert not any(path.startswith("/node_modules") for path in reachable(root_of(project)))
    root = root_of(project, more=("node_modules", ".venv/", "a/b"))
    folders = {path for path in reachable(root) if path.startswith(("/node_modules", "/.venv"))}
    assert folders == {
        *("/node_modules", "/node_modules/one", "/node_modules/.bin"),
        *("/.venv", "/.venv/bin"),
    }
    assert root.links == (".venv/bin/python",)
    project.write("node_modules/one/test/id_rsa", KEY)  # published
    packages = root_of(project, "a.py", more=("node_modules",))
    assert packages.blob(digest_of(KEY.encode())) == KEY.encode()
    project.write(".venv/id_rsa", KEY)
    assert "`.venv/id_rsa` seems to contain a private key" in refused(project, more=(".venv",))
    (project.path / ".venv/id_rsa").unlink()
    (project.path / ".venv/lib").symlink_to("../../lib")
    assert "`.venv/lib` leads to a place outside" in refused(project, more=(".venv",))
    assert refused(project, more=(".cache",)) == "there is no `.cache`"
    with check_out(found(project), "HEAD", WorktreeSettings(copy=("node_modules",))) as checkout:
        there = input_root(found(project), checkout.root_abs, ("a.py",), ("node_modules",))
    assert "/node_modules/one" in reachable(there)
    (project.path / "node_modules/out").symlink_to("../../else")
    assert "`node_modules/out` leads to a place outside" in refused(project, more=("node_modules",))


def test_what_git_does_not_ignore_is_sent_as_the_gate_sees_it(project: Repo) -> None:
    project.write(".gitignore", "made\n")
    project.write("a/made", "by a program")
    project.write("a/b", "of the user")
    project.write("a/new", "of the user")
    with check_out(found(project), "HEAD", WorktreeSettings()) as checkout:
        there = input_root(found(project), checkout.root_abs, (), ("a",))
    assert digest_of(b"by a program") in there.files
    assert digest_of(b"b") in there.files
    assert digest_of(b"of the user") not in there.files
    (project.path / "a/new").unlink()
    assert refused(project, more=("a-b",)) == "git ignores nothing in `a-b`"


CONFIG = """
[gates.lint]
command = "true"
remote = true

[gates.test]
command = "true"
inputs = ["a/"]
ignored_inputs = ["node_modules"]

[remote]
not_secret = ["tests/keys/"]
"""


@pytest.mark.slow
def test_explain_lists_what_would_be_sent(project: Repo) -> None:
    project.config(CONFIG)
    project.write(".gitignore", "node_modules\nbuild\n")
    project.write("node_modules/one/index.js", "1")
    project.write("build/x", "1")
    project.write("tests/keys/k.pem", KEY)
    project.write("web/k.pem", KEY)
    (project.path / "a/out").symlink_to("/etc/hosts")
    done = project.gitgates("explain", "--remote", "lint")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.decode().splitlines()
    assert lines[0].startswith("lint would send 17 files, 8 directories, ")
    assert lines[1] == "  31.2 KiB        1  large"
    assert lines[-6:] == [
        "not sent, because git ignores it; the gate can name it in `ignored_inputs`:",
        "  build/",
        "  node_modules/",
        "refused, so it cannot run there:",
        (
            "  the link `a/out` leads to an absolute path, /etc/hosts. Leave it out of the gate's "
            "`inputs`, or run the gate here."
        ),
        (
            "  `web/k.pem` seems to contain a private key, and is not sent. Leave it out of the "
            "gate's `inputs`; or, if it may be sent, list it in `not_secret` of "
            "[tool.gitgates.remote]."
        ),
    ]
    (project.path / "a/out").unlink()
    root = root_of(project, "a/", more=("node_modules",))
    document = json.loads(
        project.gitgates("explain", "--remote", "test", "--format", "json").stdout
    )
    assert document["digest"] == f"{root.digest.hash}/{root.digest.size_bytes}"
    assert {"path": "a/b", "size_bytes": 1} in document["files"]
    assert (document["remote"], document["ignored"], document["refused"]) == (False, ["build/"], [])
    assert document["size_bytes"] == sum(each["size_bytes"] for each in document["files"]) + sum(
        map(len, root.directories.values())
    )
    assert sha256(root.directories[root.digest]).hexdigest() == root.digest.hash


def test_explain_does_not_refuse_for_what_is_known_of_a_command(project: Repo) -> None:
    command = 'command = "ruff check"\npass_files = true'
    project.config(CONFIG.replace('command = "true"', command, 1))
    done = project.gitgates("explain", "--remote", "lint", "--format", "json")
    document = json.loads(done.stdout)
    assert document["refused"] == []
    assert {"path": "a/b", "size_bytes": 1} in document["files"]


def test_variables_that_look_like_secrets_have_to_be_named(
    project: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = (
        "LINT_MODE",
        "LINT_TOKEN",
        "LINT_API_KEY",
        "LINT_KEYS",
        "LINT_PASSAGE",
        "LINT_secret_1",
    )
    for name in names:
        monkeypatch.setenv(name, "value")
    for name, url in (
        ("LINT_URL", "https://me:password@host/"),
        ("LINT_SITE", "https://host:1/@me"),
    ):
        monkeypatch.setenv(name, url)
    more = 'env_inputs = ["LINT_*", "LINT_TOKEN"]\nenv = { A_SECRET = "none" }'
    project.config(CONFIG.replace("[gates.lint]", f"[gates.lint]\n{more}"))
    done = project.gitgates("explain", "--remote", "lint", "--format", "json")
    document = json.loads(done.stdout)
    assert document["variables"] == sorted(
        ("A_SECRET", "GITGATES_HOOK", "LINT_SITE", "LINT_URL", *names)
    )
    assert document["refused"][-3:] == [
        f"the variable `{name}` looks like a secret, and is not sent. Name it in full in "
        "`env_inputs` if it must be sent."
        for name in ("LINT_API_KEY", "LINT_URL", "LINT_secret_1")
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--remote", "lnt"), "no gate `lnt`\n  Did you mean `lint`?"),
        (("pre-commit", "--remote", "lint"), "--remote is about one gate"),
        (("--remote", "lint"), "the configuration names no other machine"),
    ],
)
def test_explain_says_what_is_missing(
    project: Repo, arguments: tuple[str, ...], message: str
) -> None:
    project.config(CONFIG.partition("[remote]")[0])
    done = project.gitgates("explain", *arguments)
    assert done.returncode == 64
    assert message in done.stderr.decode()
