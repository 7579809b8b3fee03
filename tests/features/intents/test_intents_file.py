"""The intents file: what is read of it, and what is said where it is wrong."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import tomlkit
import yaml
from config_support import table, with_tables
from conftest import Repo
from each_case import each_case
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gitgates.config.load import describe
from gitgates.core.types import PRIORITIES, Config
from gitgates.features.intents import file as intents_file
from gitgates.features.intents.file import IntentSettings, load
from gitgates.features.intents.intent import STATUSES, Intent, Intents, IntentsError
from gitgates.features.intents.parse import parse
from gitgates.git.repo import find_repo

ROOT = str(Path(__file__).resolve().parents[3])
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
OTHER = "  - {id: b, title: B, status: PENDING, owned_scope: [x]}\n"


# Nested by aliases, each level once more.
DEEP = "- &x0 []\n" + "".join(f"- &x{n} [*x{n - 1}]\n" for n in range(1, 440))


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


PATTERN = "f.yaml:5: active_intents[0].owned_scope[0]: got {}, expected "
SUCH = "a pattern such as src/** on one line, without spaces around it"
RELATIVE = "a path relative to the root of the repository, its folders separated by /"
DOTS = "a path relative to the root, without `.`, `..` and empty names"
STATUS = "one of PENDING, IN_PROGRESS, BLOCKED, COMPLETED, CANCELLED"
ID = "at most 64 letters, digits, `-`, `_` and `.`, such as INT-001"
AT_STATUS = "f.toml:16: active_intents[1].status: "
KEYS = "id, title, status, owned_scope, constraints, acceptance_criteria, priority, notes"


@each_case(
    ("keys", "expected"),
    [
        ({"id": ""}, "@2: has no `id`"),
        ({"title": "", "status": ""}, "@2: has no `title`\n@2: has no `status`"),
        ({"owned_scope": ""}, "@2: has no `owned_scope`"),
        ({"id": "a b"}, f'@2.id: got "a b", expected {ID}'),
        ({"id": "[x]"}, f'@2.id: got ["x"], expected {ID}'),
        ({"id": "x" * 65}, f'@2.id: got "{"x" * 58}…, expected {ID}'),
        ({"title": '""'}, '@3.title: got "", expected one line of 1 to 200 characters'),
        (
            {"title": r'"a\nb"'},
            r'@3.title: got "a\nb", expected one line of 1 to 200 characters',
        ),
        (
            {"title": "Fix: it"},
            (
                "f.yaml:3: is not valid YAML: mapping values are not allowed in "
                "this context at line 3, column 15"
            ),
        ),
        ({"title": "[]"}, "@3.title: got [], expected a text"),
        (
            {"name": "B"},
            f"@6.name: is not a known key. Known: {KEYS}; custom keys start with `x-`.",
        ),
        ({"status": "DONE"}, f'@4.status: got "DONE", expected {STATUS}'),
        (
            {"status": "complete"},
            f'@4.status: got "complete", expected {STATUS}. Did you mean `COMPLETED`?',
        ),
        (
            {"priority": "p0"},
            '@6.priority: got "p0", expected one of critical, high, normal, low',
        ),
        (
            {"owned_scopes": "[a]"},
            "@6.owned_scopes: is not a known key. Did you mean `owned_scope`?",
        ),
        (
            {"depends": "[a]"},
            f"@6.depends: is not a known key. Known: {KEYS}; custom keys start with `x-`.",
        ),
        (
            {"constraints": "none"},
            '@6.constraints: got "none", expected a list of strings',
        ),
        (
            {"constraints": "\n      - a\n      - Never: that"},
            (
                '@8.constraints[1]: got { Never = "that" }, expected a text. '
                "A string that contains `: ` needs quotes."
            ),
        ),
        (
            {"acceptance_criteria": '[""]'},
            '@6.acceptance_criteria[0]: got "", expected a text that is not empty',
        ),
        ({"notes": "[a]"}, '@6.notes: got ["a"], expected a text'),
        (
            {"status": "PENDING\n    status: BLOCKED"},
            "@5.status: is defined twice. Keep only one.",
        ),
        (
            {"owned_scope": "[]"},
            "@5.owned_scope: got [], expected at least one pattern such as src/**",
        ),
        (
            {"owned_scope": " "},
            '@5.owned_scope: got "", expected at least one pattern such as src/**',
        ),
        (
            {"owned_scope": '["!src/"]'},
            '@5.owned_scope: got ["!src/"], expected at least one pattern such as src/**',
        ),
        (
            {"owned_scope": "src/**"},
            '@5.owned_scope: got "src/**", expected a list of strings',
        ),
        ({"owned_scope": "[/]"}, PATTERN.format('"/"') + SUCH),
        ({"owned_scope": '[" src"]'}, PATTERN.format('" src"') + SUCH),
        ({"owned_scope": r'["a\nb"]'}, PATTERN.format(r'"a\nb"') + SUCH),
        ({"owned_scope": "[~/src]"}, PATTERN.format('"~/src"') + RELATIVE),
        ({"owned_scope": r'["C:\\src"]'}, PATTERN.format(r'"C:\\src"') + RELATIVE),
        ({"owned_scope": r'["src\\a"]'}, PATTERN.format(r'"src\\a"') + RELATIVE),
        ({"owned_scope": "[//host/src]"}, PATTERN.format('"//host/src"') + RELATIVE),
        ({"owned_scope": "[../src]"}, PATTERN.format('"../src"') + DOTS),
        ({"owned_scope": "[src/../../x]"}, PATTERN.format('"src/../../x"') + DOTS),
        ({"owned_scope": "[./src]"}, PATTERN.format('"./src"') + DOTS),
        ({"owned_scope": "[a//b]"}, PATTERN.format('"a//b"') + DOTS),
        (
            {"owned_scope": "[/etc/passwd]"},
            PATTERN.format('"/etc/passwd"')
            + "a path relative to the root of the repository, such as etc/passwd",
        ),
        (
            {"owned_scope": "[.Git/hooks/x]"},
            PATTERN.format('".Git/hooks/x"')
            + "a path of the working tree: nothing in .git can be in a scope",
        ),
        (
            {"owned_scope": "\n      - src/**\n      - !src/a.py"},
            (
                '@7.owned_scope[1]: got "", expected a pattern such as src/**. A pattern that '
                "starts with `*` or `!` needs quotes."
            ),
        ),
        (
            {"owned_scope": "[*.py]"},
            (
                "f.yaml:5: is not valid YAML: while scanning an alias at line 5, column 19 did not "
                "find expected alphabetic or numeric character at line 5, column 20. A pattern "
                "that starts with `*` or `!` needs quotes."
            ),
        ),
    ],
)
def test_what_is_wrong_with_an_intent_is_said(keys: dict[str, str], expected: str) -> None:
    there = re.sub("@([0-9])", r"f.yaml:\1: active_intents[0]", expected)
    assert said(one(**keys)) == there


@each_case(
    ("text", "expected"),
    [
        (
            "- a",
            'f.yaml:1: got ["a"], expected a table with the key `active_intents`. For example: …',
        ),
        ("intents: []", "f.yaml:1: intents: is not a known key. Did you mean `active_intents`?"),
        (
            "active_intents: {a: b}",
            'f.yaml:1: active_intents: got { a = "b" }, expected a list of intents. For example: …',
        ),
        (
            "active_intents: [a]",
            (
                'f.yaml:1: active_intents[0]: got "a", expected a table with id, title, status, '
                "owned_scope"
            ),
        ),
        ("a: [", "f.yaml:2: is not valid YAML: …"),
        ("a: b\n---\nc: d", "f.yaml:1: is not valid YAML: …"),
        (DEEP, "f.yaml: is nested more than 10 deep"),
        ("[" * 200 + "]" * 200, "f.yaml: is not valid YAML: it is nested more than 100 deep"),
    ],
)
def test_a_file_of_another_shape_is_refused(text: str, expected: str) -> None:
    head, cut, _ = expected.partition("…")
    assert said(text).startswith(head) if cut else said(text) == head


def test_all_problems_are_told_at_once() -> None:
    text = one(id="a b", status="done", owned_scope="[../x]", prority="high") + OTHER + OTHER
    assert said(text) == (
        f'f.yaml:2: active_intents[0].id: got "a b", expected {ID}\n'
        f'f.yaml:4: active_intents[0].status: got "done", expected {STATUS}\n'
        f"{PATTERN.format(chr(34) + '../x' + chr(34))}{DOTS}\n"
        "f.yaml:6: active_intents[0].prority: is not a known key. Did you mean `priority`?\n"
        'f.yaml:8: active_intents[2].id: got "b", which is the id of another intent in line 7. '
        "Give each intent a unique id."
    )


def test_ids_that_differ_in_case_alone_are_one() -> None:
    text = one(id="B") + OTHER
    assert 'got "b", which is the id of another intent in line 2' in said(text)


@each_case(
    ("old", "new", "expected"),
    [
        (
            '"PENDING"',
            '"DONE"',
            f'f.toml:16: active_intents[1].status: got "DONE", expected {STATUS}',
        ),
        ('"PENDING"', "7", f"{AT_STATUS}got 7, expected {STATUS}"),
        ('"docs/"', "7", "f.toml:17: active_intents[1].owned_scope[0]: got 7, expected a text"),
        ('name = "Docs"', "", "f.toml:13: active_intents[1]: has no `title`"),
        ('"Docs"', "", "f.toml:15: is not valid TOML: Invalid value (at line 15, column 8)"),
        (
            "x-team",
            "team",
            (
                f"f.toml:18: active_intents[1].team: is not a known key. Known: {KEYS}; "
                "custom keys start with `x-`."
            ),
        ),
    ],
)
def test_what_is_wrong_in_toml_is_said_with_its_line(old: str, new: str, expected: str) -> None:
    assert said(TOML.replace(old, new), "f.toml") == expected


def test_toml_may_be_on_one_line() -> None:
    row = '{id = "a", name = 7, status = "PENDING", owned_scope = ["x"]}'
    assert said(f"active_intents = [{row}]", "f.toml") == (
        "f.toml:1: active_intents[0].title: got 7, expected a text"
    )


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


@given(st.text(), st.sampled_from(["yaml", "toml"]))
def test_no_text_is_a_bug(text: str, extension: str) -> None:
    parse(text, f"f.{extension}")
    parse(f"{YAML}{text}", f"f.{extension}")


class Project:
    """A repository with intents."""

    def __init__(self, repo: Repo, file: str = FILE) -> None:
        self.path = repo.path / file
        self.path.parent.mkdir(exist_ok=True)
        self.repo = find_repo(str(repo.path), dict(os.environ))
        self.config = with_tables(Config(), table(IntentSettings, file=file))
        self.compiled = Path(f"{self.repo.state_abs}/intents.marshal")

    def load(self) -> Intents:
        return load(self.repo, self.config)

    def refusal(self) -> str:
        with pytest.raises(IntentsError) as caught:
            self.load()
        assert caught.value.hint == "To check it: gitgates intent validate"
        return caught.value.message


@pytest.fixture(name="project")
def _project(repo: Repo) -> Project:
    return Project(repo)


def test_without_settings_or_file_there_are_no_intents(project: Project) -> None:
    assert load(project.repo, Config()) == Intents(file="")
    assert project.load() == Intents(file=FILE)


def test_a_file_that_has_not_changed_is_not_parsed_again(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.path.write_text(YAML)
    assert project.load() == Intents(file=FILE, intents=INTENTS)
    monkeypatch.setattr(intents_file, "_checked", None)
    assert project.load() == Intents(file=FILE, intents=INTENTS)
    assert project.compiled.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("garbage", [b"", b"\x00", b"{\x01\x02", b"N", None])
def test_a_compiled_copy_that_is_damaged_or_stale_is_not_used(
    project: Project, garbage: bytes | None
) -> None:
    project.path.write_text(YAML)
    project.load()
    if garbage is None:
        project.path.write_text(YAML.replace("Weather API", "Weather APJ"))
        expected = (INTENTS[0]._replace(title="Weather APJ"), INTENTS[1])
    else:
        project.compiled.write_bytes(garbage)
        expected = INTENTS
    assert project.load().intents == expected


def test_hooks_load_no_parser_for_a_file_that_they_know(project: Project) -> None:
    project.path.write_text(YAML.replace("Weather", "Wettér"))
    script = """
import os, sys
from gitgates.git.repo import find_repo
from gitgates.features.intents.context import context_text
from gitgates.features.intents.file import load
from gitgates.features.intents.scope import is_inside
from gitgates.core.types import Config
settings = {"file": ".orchestration/active_intents.yaml", "required": False, "ask": ()}
settings |= {"ttl_s": 1800.0, "context_bytes": 8192}
intents = load(find_repo(os.getcwd(), {}), Config(tables={"intents": settings}))
assert is_inside(intents.intents[0], "src/weather/é.py")
assert "Wettér" in context_text(intents.intents[0], (), 1000)
print(*({"yaml", "re", "json", "tomllib", "typing", "enum", "difflib"} & {*sys.modules}))
"""
    argv = [sys.executable, "-I", "-S", "-c", f"import sys; sys.path.insert(0, {ROOT!r}){script}"]

    def loaded() -> set[bytes]:
        done = subprocess.run(argv, cwd=project.repo.root_abs, capture_output=True, check=False)
        assert (done.returncode, done.stderr) == (0, b"")
        return {*done.stdout.split()}

    assert b"yaml" in loaded()
    assert loaded() == set()


def test_a_compiled_copy_is_of_one_file(repo: Repo) -> None:
    text = "active_intents: []\n"  # which is not valid TOML
    first, second = Project(repo, "a.yaml"), Project(repo, "a.toml")
    first.path.write_text(text)
    second.path.write_text(text)
    assert first.load().intents == ()
    assert "is not valid TOML" in second.refusal()


def test_intents_are_found_by_id_and_status() -> None:
    intents = Intents(file=FILE, intents=INTENTS)
    assert (intents.get("002"), intents.get("003")) == (INTENTS[1], None)
    assert intents.active == INTENTS[:1]


texts = st.lists(st.text(st.characters(codec="utf-8")).filter(str.strip), max_size=3).map(tuple)
any_intents = st.lists(
    st.builds(
        Intent,
        id=st.from_regex(r"[a-z0-9][a-z0-9._-]{0,63}", fullmatch=True),
        title=st.text(st.characters(categories=["L", "N"]), min_size=1, max_size=200),
        status=st.sampled_from(STATUSES),
        owned_scope=st.lists(st.sampled_from(["src/**", "/a", "*.é"]), min_size=1).map(tuple),
        constraints=texts,
        acceptance_criteria=texts,
        priority=st.sampled_from(PRIORITIES),
        notes=st.text(st.characters(codec="utf-8")),
    ),
    max_size=4,
    unique_by=lambda intent: intent.id,
).map(tuple)


@given(intents=any_intents, extension=st.sampled_from(["yaml", "toml"]))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_compiled_copy_says_what_the_file_says(
    repo: Repo, intents: tuple[Intent, ...], extension: str
) -> None:
    project = Project(repo, f"intents.{extension}")
    document = {"active_intents": [intent._asdict() for intent in intents]}
    dump = tomlkit.dumps if extension == "toml" else yaml.safe_dump
    project.path.write_bytes(dump(document).encode())
    assert project.load().intents == project.load().intents == intents


def test_what_is_no_readable_file_is_refused(project: Project, tmp_path: Path) -> None:
    (tmp_path / "elsewhere.yaml").write_text(YAML)
    project.path.symlink_to(tmp_path / "elsewhere.yaml")
    target = tmp_path / "elsewhere.yaml"
    assert project.refusal() == f"{FILE}: got a link to {target}, expected a regular file"
    project.path.unlink()
    project.path.mkdir()
    assert project.refusal() == f"{FILE}: expected a regular file"
    project.path.rmdir()
    project.path.write_bytes(b"# \xff\n")
    assert project.refusal() == f"{FILE}:1: got the byte 0xff, expected UTF-8"
    project.path.write_bytes(b"#" * (1 << 20) + b"\n")
    assert project.refusal() == (
        f"{FILE}: got 1048577 bytes, expected at most 1048576. Remove finished intents."
    )
    project.path.write_text("active_intents: 7\n")
    assert project.refusal().startswith(f'{FILE}:1: active_intents: got "7", expected a list')


def test_a_folder_that_leads_out_of_the_repository_is_refused(repo: Repo, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "active_intents.yaml").write_text(YAML)
    (repo.path / ".orchestration").symlink_to(elsewhere)
    assert Project(repo).refusal() == (
        f"{FILE}: is not in the repository: {repo.path}/.orchestration is a link to {elsewhere}"
    )
