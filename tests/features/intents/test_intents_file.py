"""The intents file: what is read of it, and what is said where it is wrong."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
import tomlkit
import yaml
from config_support import table, with_tables
from conftest import Repo
from each_case import each_case
from hypothesis import given
from hypothesis import strategies as st

from gitgates.config.load import describe
from gitgates.core.types import Config
from gitgates.features.intents.file import load
from gitgates.features.intents.intent import Intent, Intents, IntentsError, IntentSettings
from gitgates.features.intents.parse import parse
from gitgates.git.repo import find_repo

FILE = ".orchestration/active_intents.yaml"
YAML = """\
active_intents:
  - id: INT-001
    title: Weather API
    status: in_progress
    owned_scope: [src/weather/**, /README.md]
    constraints:
      - No new dependency
    acceptance_criteria:
      - "GET /weather: 200"
    priority: high
    notes: |
      One.
      Two.
  - id: "002"
    name: Docs
    status: PENDING
    owned_scope:
      - docs/
      - "!docs/reference/"
    constraints:
    x-team: web
"""
TOML = """\
[[active_intents]]
id = "INT-001"
title = "Weather API"
status = "in_progress"
owned_scope = ["src/weather/**", "/README.md"]
constraints = ["No new dependency"]
acceptance_criteria = ["GET /weather: 200"]
priority = "high"
notes = '''
One.
Two.
'''
[[active_intents]]
id = "002"
name = "Docs"
status = "PENDING"
owned_scope = ["docs/", "!docs/reference/"]
x-team = "web"
"""
INTENTS = (
    Intent(
        id="INT-001",
        title="Weather API",
        status="IN_PROGRESS",
        owned_scope=("src/weather/**", "/README.md"),
        constraints=("No new dependency",),
        acceptance_criteria=("GET /weather: 200",),
        priority="high",
        notes="One.\nTwo.\n",
    ),
    Intent(id="002", title="Docs", status="PENDING", owned_scope=("docs/", "!docs/reference/")),
)


# Nested by aliases, each level once more.
DEEP = "- &x0 []\n" + "".join(f"- &x{n} [*x{n - 1}]\n" for n in range(1, 440))
OTHER = "  - {id: b, title: B, status: PENDING, owned_scope: [x]}\n"


def said(text: str, file: str = "f.yaml") -> str:
    """Return what is said of a file."""
    _intents, problems = parse(text, file)
    return describe(list(problems))


def one(**keys: str) -> str:
    """Return a file of one intent, in which some keys are replaced or, if empty, left out."""
    row = {"id": "a", "title": "A", "status": "PENDING", "owned_scope": "[src/**]", **keys}
    lines = [f"{key}: {value}\n" for key, value in row.items() if value]
    return f"active_intents:\n  - {'    '.join(lines)}"


@each_case(("text", "file"), [(YAML, "f.yaml"), (YAML, "f.yml"), (TOML, "f.toml")])
def test_yaml_and_toml_say_the_same(text: str, file: str) -> None:
    assert parse(text, file) == (INTENTS, ())


@each_case(
    ("text", "file"),
    [
        *((text, "f.yaml") for text in ("", "# nothing\n", "{}", "active_intents:", "--- \n...")),
        *((text, "f.toml") for text in ("", "active_intents = []")),
    ],
)
def test_a_file_without_intents_is_right(text: str, file: str) -> None:
    assert parse(text, file) == ((), ())


PATTERN = "f.yaml:5: active_intents.a.owned_scope[0]: got {}, expected "
SUCH = "a pattern such as src/** on one line, without spaces around it"
RELATIVE = "a path of the working tree relative to its root, such as src/**, without `.`, `..`"
STATUS = "one of PENDING, IN_PROGRESS, BLOCKED, COMPLETED, CANCELLED"
ID = "at most 64 letters, digits, `-`, `_` and `.`, such as INT-001"


@each_case(
    ("keys", "expected"),
    [
        ({"title": "", "status": ""}, "active_intents[0]: has no `title`"),
        ({"id": "a b"}, f'f.yaml:2: active_intents.a b.id: got "a b", expected {ID}'),
        ({"title": '""'}, '@3.title: got "", expected one line of 1 to 200 characters'),
        ({"title": "Fix: it"}, "f.yaml:3: is not valid YAML: mapping values are not allowed"),
        ({"status": "complete"}, f'"complete", expected {STATUS}. Did you mean `COMPLETED`?'),
        ({"priority": "p0"}, '"p0", expected one of critical, high, normal, low'),
        ({"owned_scopes": "[a]"}, "owned_scopes: unknown key. Did you mean `owned_scope`?"),
        ({"constraints": "none"}, '@6.constraints: got "none", expected an array of strings'),
        ({"notes": "[a]"}, '@6.notes: got ["a"], expected text in quotes'),
        ({"status": "A\n    status: B"}, "@2: the key is given twice. Keep only one of them."),
        ({"owned_scope": "[]"}, "@5.owned_scope: got [], expected at least one pattern"),
        ({"owned_scope": '["!src/"]'}, 'got ["!src/"], expected at least one pattern'),
        ({"owned_scope": "[*.py]"}, "A pattern that starts with `*` or `!` needs quotes"),
        ({"owned_scope": '[" src"]'}, PATTERN.format('" src"') + SUCH),
        ({"owned_scope": r'["a\nb"]'}, PATTERN.format(r'"a\nb"') + SUCH),
        *(
            ({"owned_scope": f"['{pattern}']"}, RELATIVE)
            for pattern in ("~/src", r"C:\src", r"src\a", "//host/src", "/etc/passwd", "../src")
        ),
        *(
            ({"owned_scope": f"['{pattern}']"}, RELATIVE)
            for pattern in ("src/../../x", "./src", "a//b", ".Git/hooks/x", "!/a/b")
        ),
    ],
)
def test_what_is_wrong_with_an_intent_is_said(keys: dict[str, str], expected: str) -> None:
    assert re.sub("@([0-9])", r"f.yaml:\1: active_intents.a", expected) in said(one(**keys))


@each_case(
    ("text", "expected"),
    [
        ("- a", 'f.yaml:1: got ["a"], expected a table with the key `active_intents`. For example'),
        ("intents: []", "f.yaml: intents: unknown key. Did you mean `active_intents`?"),
        ("active_intents: {a: b}", 'got { a = "b" }, expected an array of tables'),
        ("active_intents: [a]", 'active_intents[0]: got "a", expected a table'),
        ("a: [", "f.yaml:2: is not valid YAML: "),
        ("a: b\n---\nc: d", "f.yaml:1: is not valid YAML: "),
        (DEEP, "f.yaml: is not valid YAML: "),
    ],
)
def test_a_file_of_another_shape_is_refused(text: str, expected: str) -> None:
    assert expected in said(text)


def test_all_problems_are_told_at_once() -> None:
    text = one(status="done", owned_scope="[../x]", prority="high") + OTHER + OTHER
    assert [line.partition(": got")[0] for line in said(text).splitlines()] == [
        "f.yaml:6: active_intents.a.prority: unknown key. Did you mean `priority`?",
        "f.yaml:4: active_intents.a.status",
        "f.yaml:5: active_intents.a.owned_scope[0]",
        "f.yaml: active_intents[2]: `b` is defined twice. Give one of them a different `id`.",
    ]


@each_case(
    ("old", "new", "expected"),
    [
        (
            '"PENDING"',
            '"DONE"',
            f'f.toml: active_intents.002.status: got "DONE", expected {STATUS}',
        ),
        (
            '"docs/"',
            "7",
            "f.toml: active_intents.002.owned_scope[0]: got 7, expected text in quotes",
        ),
        ('"Docs"', "", "f.toml:15: is not valid TOML: Invalid value (at line 15, column 8)"),
    ],
)
def test_what_is_wrong_in_toml_is_said(old: str, new: str, expected: str) -> None:
    assert said(TOML.replace(old, new), "f.toml").startswith(expected)


keys = st.sampled_from([*Intent._fields, "name", "x-y", "active_intents", ""]) | st.text()
scalars = st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
tables = st.recursive(
    scalars, lambda one: st.lists(one, max_size=4) | st.dictionaries(keys, one, max_size=4)
)
documents = tables.map(lambda one: {"active_intents": one}) | st.dictionaries(keys, tables)


@given(documents, st.sampled_from(["yaml", "toml"]))
def test_no_document_is_a_bug(document: dict[str, object], extension: str) -> None:
    try:
        text = tomlkit.dumps(document) if extension == "toml" else yaml.safe_dump(document)
    except (ValueError, TypeError):
        return  # what tomlkit cannot write
    _intents, problems = parse(text, f"f.{extension}")
    assert all(problem.location.startswith(f"f.{extension}") for problem in problems)


class Project:
    """A repository with intents."""

    def __init__(self, repo: Repo, file: str = FILE) -> None:
        self.path = repo.path / file
        self.path.parent.mkdir(exist_ok=True)
        self.repo = find_repo(str(repo.path), dict(os.environ))
        self.config = with_tables(Config(), table(IntentSettings, file=file))

    def load(self) -> Intents:
        return load(self.repo, self.config)

    def refusal(self) -> str:
        with pytest.raises(IntentsError) as caught:
            self.load()
        assert caught.value.hint == "To check it: gitgates intent validate"
        return caught.value.message


def test_without_settings_or_file_there_are_no_intents(repo: Repo) -> None:
    project = Project(repo)
    assert load(project.repo, Config()) == Intents(file="")
    assert project.load() == Intents(file=FILE)
    project.path.write_text(YAML)
    intents = project.load()
    assert intents == Intents(file=FILE, intents=INTENTS)
    assert (intents.get("002"), intents.get("003")) == (INTENTS[1], None)
    assert intents.active == INTENTS[:1]


def test_what_is_no_readable_file_is_refused(repo: Repo, tmp_path: Path) -> None:
    project = Project(repo)
    no_link = "Make it a regular file, not a link."
    (tmp_path / "elsewhere.yaml").write_text(YAML)
    project.path.symlink_to(tmp_path / "elsewhere.yaml")
    assert project.refusal().endswith(no_link)
    project.path.unlink()
    project.path.mkdir()
    assert project.refusal().endswith(no_link)
    project.path.rmdir()
    project.path.write_bytes(b"# \xff\n")
    assert project.refusal() == f"{FILE}:1: got the byte 0xff, expected UTF-8"
    project.path.write_bytes(b"#" * (1 << 20) + b"\n")
    assert project.refusal().startswith(f"{FILE}: got more than 1048576 bytes")
    project.path.write_text("active_intents: 7\n")
    assert "active_intents: got" in project.refusal()


def test_a_folder_that_leads_out_of_the_repository_is_refused(repo: Repo, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "active_intents.yaml").write_text(YAML)
    (repo.path / ".orchestration").symlink_to(elsewhere)
    assert Project(repo).refusal() == (
        f"{FILE}: is not in the repository: {repo.path}/.orchestration is a link to {elsewhere}"
    )
