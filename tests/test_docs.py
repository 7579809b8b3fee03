"""The docs are true: pages made from the code are fresh, commands exist, links lead somewhere."""

from __future__ import annotations

import functools
import importlib.util
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click
import pytest
import yaml

from gitgates.cli import VERBS, load_verb
from gitgates.config import keys
from gitgates.config.keys import tables
from gitgates.config.load import inspect, parse_files
from gitgates.core import environ, errors
from gitgates.core.lifecycle import HOOK_POINTS
from gitgates.core.parts import feature_parts
from gitgates.hosts import AGENTS, agent_host
from gitgates.report import result as fields

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parent.parent
ENVIRONMENT = [
    name
    for rows in (
        environ.NAMES,
        *(module.NAMES for module in feature_parts("environ")),
        *(agent_host(agent).ENVIRONMENT.documented for agent in AGENTS),
    )
    for name, _by, _meaning in rows
]
REFERENCE = ROOT / "docs" / "reference"
WHOLE = ("toml", "toml own")
HOST_VERBS = ("git-hook", "pre-commit-hook", "agent-hook")
OWN = ("docs", "gitgates", "tests")


@functools.cache
def _generate() -> Any:
    spec = importlib.util.spec_from_file_location("generate", ROOT / "docs" / "generate.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@functools.cache
def _site_only_pages() -> dict[str, str]:
    """Return the pages that are not stored: the site makes them from the code."""
    made: dict[str, str] = _generate().site_only_pages()
    return made


class Block(NamedTuple):
    """One fenced block of a page."""

    page: str
    line: int
    info: str
    text: str


def _markdown() -> list[Path]:
    return sorted([*ROOT.glob("*.md"), *(p for top in OWN for p in (ROOT / top).rglob("*.md"))])


def _blocks() -> list[Block]:
    found = []
    for path in _markdown():
        text = path.read_text(encoding="utf-8")
        for match in re.finditer(r"^```([^\n]*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
            line = text.count("\n", 0, match.start()) + 1
            found.append(Block(str(path.relative_to(ROOT)), line, match[1].strip(), match[2]))
    return found


MARKDOWN = _markdown()
BLOCKS = _blocks()


def _name(block: Block) -> str:
    return f"{block.page}:{block.line}"


# Pages made from the code


@pytest.mark.slow
def test_generated_pages_are_fresh() -> None:
    stored = {path.name: path.read_text(encoding="utf-8") for path in REFERENCE.glob("*.md")}
    stored.pop("benchmarks.md")  # measured, not made from the code: tests/test_bench_peers.py
    assert stored == _generate().pages(), "stale: run `make docs`"


@pytest.mark.slow
def test_the_journal_page_says_what_each_field_means_and_who_writes_it() -> None:
    journal = _site_only_pages()["journal.md"]
    assert [line for line in journal.splitlines() if line.endswith("|  |")] == []
    assert "Written by ." not in journal


@pytest.mark.slow
def test_the_site_has_a_page_for_each_verb() -> None:
    pages = _site_only_pages()
    assert {f"commands/{verb}.md" for verb in VERBS} <= {*pages}
    overview = pages["commands/index.md"]
    names = (*(f"[`gitgates {verb}`]({verb}.md)" for verb in VERBS), *HOST_VERBS)
    assert [name for name in names if name not in overview] == []


def test_each_verb_and_each_option_has_help() -> None:
    missing = []
    for name, command in _commands():
        missing += [name] if not command.help else []
        missing += [
            f"{name} {option.opts[0]}"
            for option in command.params
            if isinstance(option, click.Option) and not option.help and not option.hidden
        ]
    assert missing == []


def _commands() -> Iterator[tuple[str, click.Command]]:
    """Yield each verb, and each verb below one."""
    for verb in VERBS:
        command = load_verb(verb)
        yield verb, command
        if isinstance(command, click.Group):
            yield from ((f"{verb} {name}", below) for name, below in command.commands.items())


@pytest.mark.parametrize(
    ("page", "words"),
    [
        (
            "configuration.md",
            [
                f"`{k.name}`"
                for k in (
                    *keys.TOP_KEYS,
                    *keys.GATE_KEYS,
                    *keys.HOOK_KEYS,
                    *(key for table in tables().values() for key in table.keys),
                )
            ],
        ),
        ("hooks.md", [f"`{name}`" for name in HOOK_POINTS]),
        (
            "result-json.md",
            [
                f"`{name.rstrip('*')}`"
                for name in (*fields.RUN, *fields.CYCLE, *fields.ATTEMPT, *fields.RESULT)
            ]
            + [f"`{outcome}`" for outcome in fields.OUTCOMES],
        ),
        ("environment.md", [f"`{name}`" for name in ENVIRONMENT]),
        ("exit-statuses.md", [f"| {status} |" for status, _meaning in errors.EXIT_STATUSES]),
    ],
)
def test_nothing_is_missing_in_the_reference(page: str, words: list[str]) -> None:
    text = (REFERENCE / page).read_text(encoding="utf-8")
    assert [word for word in words if word not in text] == []


def test_every_exit_status_in_use_is_documented() -> None:
    classes: list[type[errors.GitgatesError]] = [errors.GitgatesError]
    used = {cls.exit_status for cls in classes + errors.GitgatesError.__subclasses__()}
    shim = (ROOT / "gitgates" / "setup" / "install" / "shim.sh").read_text(encoding="utf-8")
    used |= {int(status) for status in re.findall(r"^\s*exit (\d+)$", shim, re.MULTILINE)}
    assert used - {status for status, _meaning in errors.EXIT_STATUSES} == set()


def test_every_environment_name_in_use_is_documented() -> None:
    read = re.compile(r'(?:\.get\(\s*|[\w)\]]\[)"([A-Z][A-Z0-9_]{2,})"')
    files = (ROOT / "gitgates").rglob("*.py")
    used = {name for path in files for name in read.findall(path.read_text())}
    assert "GITGATES" in used
    assert sorted(used.difference(ENVIRONMENT)) == []


# Pages written by hand


def _lines_of_shell() -> list[tuple[str, str]]:
    """Return every command that a page shows, with its place."""
    found = []
    for block in BLOCKS:
        if block.info == "console":
            lines = [line[2:] for line in block.text.splitlines() if line.startswith("$ ")]
        elif block.info in ("sh", "bash"):
            lines = block.text.replace("\\\n", " ").splitlines()
        else:
            continue
        found += [(_name(block), line) for line in lines]
    for path in MARKDOWN:
        spans = re.findall(r"`((?:gitgates|make) [^`\n]+)`", path.read_text(encoding="utf-8"))
        found += [(str(path.relative_to(ROOT)), span) for span in spans]
    return found


def _words(line: str, program: str) -> list[list[str]]:
    """Return the words after each call of a program in a line of shell."""
    line = re.sub(r"(?:^|\s)#.*", "", line)
    calls = re.findall(rf"(?:^|[;&|(]\s*|\s|=\"?){program}\s+([^;&|)\n]*)", line)
    return [shlex.split(call.replace("…", "").replace("'", '"')) for call in calls]


def test_commands_in_the_docs_exist() -> None:
    wrong = [
        f"{place}: gitgates {' '.join(words)}: no {missing}"
        for place, line in _lines_of_shell()
        for words in _words(line, "gitgates")
        if words and (missing := _missing(words))
    ]
    assert wrong == []


def _missing(words: list[str]) -> str:
    verb = words[0]
    if verb in HOST_VERBS or verb in ("--help", "--version", "-h", "VERB"):
        return ""
    if verb not in VERBS:
        return verb
    command = load_verb(verb)
    if isinstance(command, click.Group) and words[1:] and not words[1].startswith("-"):
        below = command.get_command(click.Context(command), words[1])  # it may load it only then
        if below is None:
            return words[1]
        command = below
    known = {option for param in command.params for option in (*param.opts, *param.secondary_opts)}
    options = [word.partition("=")[0] for word in words[1:] if re.match(r"--?[a-z]", word)]
    return next((o for o in options if o not in (*known, "--help", "-h")), "")


def test_make_targets_in_the_docs_exist() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z][a-z0-9-]*):", makefile, re.MULTILINE))
    wrong = [
        f"{place}: {line}"
        for place, line in _lines_of_shell()
        if re.match(r"make [a-z0-9-]+", line) and line.split()[1] not in targets
    ]
    assert wrong == []
    helped = re.findall(r"^([a-z][a-z0-9-]*):.*## ", makefile, re.MULTILINE)
    assert sorted(helped) == sorted(targets)


@functools.cache
def _anchors(path: Path) -> set[str]:
    """Return the anchors that the headings of a page get on GitHub."""
    text = re.sub(r"^```.*?^```$", "", path.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {
        re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-") for heading in headings
    }


def test_the_index_lists_every_page() -> None:
    index = (ROOT / "docs/README.md").read_text()
    pages = {str(page.relative_to(ROOT / "docs")) for page in (ROOT / "docs").glob("*/*.md")}
    assert sorted(p for p in pages if not p.startswith("adr/") and f"]({p})" not in index) == []


def test_the_list_of_decisions_is_whole() -> None:
    folder = ROOT / "docs/adr"
    listed = re.findall(
        r"^- \[(\d+)\]\((.*)\): (.*)", (folder / "README.md").read_text(), re.MULTILINE
    )
    decisions = sorted(folder.glob("0*.md"))
    assert [(n, name, f"# {n}: {title}") for n, name, title in listed] == [
        (p.name[:4], p.name, p.read_text().partition("\n")[0]) for p in decisions
    ]


def test_links_lead_somewhere() -> None:
    links = [(path, link) for path in MARKDOWN for link in _links(path)]
    assert len(links) > len(MARKDOWN)
    dead = [f"{path.relative_to(ROOT)}: {link}" for path, link in links if _is_dead(path, link)]
    assert dead == []


def _links(path: Path) -> list[str]:
    text = re.sub(r"^```.*?^```$", "", path.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
    return [link for link in re.findall(r"\]\(([^)\s]+)\)", text) if not re.match(r"[a-z]+:", link)]


def _is_dead(path: Path, link: str) -> bool:
    target, _, anchor = link.partition("#")
    page = path.parent / target if target else path
    return not page.exists() or (anchor != "" and anchor not in _anchors(page))


def test_settings_in_the_docs_are_right() -> None:
    blocks = [block for block in BLOCKS if block.info.startswith("toml")]
    assert len(blocks) > 30
    assert {_name(block): wrong for block in blocks if (wrong := _wrong_settings(block))} == {}


def _wrong_settings(block: Block) -> list[object]:
    """`toml`: whole. `toml own`: `gitgates.toml`. `toml partial`: names gates defined elsewhere.

    `toml local`: laid over. `toml member`: of `web/`.
    """
    names = {
        "toml own": "gitgates.toml",
        "toml local": "gitgates.local.toml",
        "toml member": "web/gitgates.toml",
    }
    name = names.get(block.info, "pyproject.toml")
    root = {"gitgates.toml": b'members = ["web"]'} if block.info == "toml member" else {}
    member = {  # of those that name it
        "web/gitgates.toml": b"root = false",
        "shared/python.toml": b"[gates.lint]\ncommand = 'ruff check'\n",
    }
    config, problems = parse_files({**root, **member, name: block.text.encode()})
    wrong = [problem for problem in problems if not (problem.deferred and block.info not in WHOLE)]
    return [*wrong] if config else [*wrong, "there is no configuration"]


def test_our_own_settings_are_right() -> None:
    config, problems = inspect(str(ROOT))
    assert problems == ()
    assert config is not None
    assert [hook.name for hook in config.hooks] == ["pre-commit", "Stop", "pre-push"]


def test_yaml_in_the_docs_can_be_read() -> None:
    blocks = [block for block in BLOCKS if block.info == "yaml"]
    assert blocks
    assert [_name(block) for block in blocks if not yaml.safe_load(block.text)] == []


def test_every_page_can_be_reached_from_the_readme() -> None:
    seen: set[Path] = set()
    waiting = [ROOT / "README.md"]
    while waiting:
        page = waiting.pop()
        seen.add(page)
        links = re.findall(r"\]\(([^)\s#:]+)", page.read_text(encoding="utf-8"))
        targets = [(page.parent / link).resolve() for link in links]
        # A link to a folder shows all that lies in it.
        found = {t for t in targets if t.suffix == ".md"}.union(*(t.glob("*.md") for t in targets))
        waiting += sorted(path for path in found - seen if path.exists())
    lost = [path for path in MARKDOWN if path not in seen and "docs" in path.parts]
    assert [str(path.relative_to(ROOT)) for path in lost] == []


@pytest.mark.slow
def test_the_demo_goes_as_it_says() -> None:
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    done = subprocess.run(
        ["sh", ROOT / "docs" / "demo.sh"],
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith("all as expected; the throw-away repository is removed\n")


def test_the_names_that_pages_give_with_a_file_are_in_it() -> None:
    """Of `NAME` in `FILE.py`, in the pages for developers."""
    named = re.compile(r"`([\w.]+)`(?: and `([\w.]+)`)? in `([a-z_]+/[\w/]+\.py)`")
    missing, count = [], 0
    for page in ("AGENTS.md", "docs/explanation/architecture.md"):
        for first, second, file in named.findall((ROOT / page).read_text("utf-8")):
            count += 1
            text = (ROOT / ("" if file.startswith("tests/") else "gitgates") / file).read_text(
                "utf-8"
            )
            names = [name.rpartition(".")[2] for name in (first, second) if name]
            missing += [(page, name, file) for name in names if not re.search(rf"\b{name}\b", text)]
    assert missing == []
    assert count > 15


def test_the_places_in_the_glossary_exist() -> None:
    text = (ROOT / "docs/explanation/glossary.md").read_text(encoding="utf-8")
    places = re.findall(r"`([a-z_]+/[\w/]*(?:\.py)?)`", text)
    assert [place for place in places if not (ROOT / "gitgates" / place).exists()] == []
    assert len(places) > 50
