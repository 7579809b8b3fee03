"""Which intent a path belongs to, and what an agent is told of its intent."""

from __future__ import annotations

from each_case import each_case
from hypothesis import given
from hypothesis import strategies as st

from gitgates.features.intents.context import SMALLEST, context_text
from gitgates.features.intents.intent import STATUSES, Intent, Intents
from gitgates.features.intents.scope import is_in_scope, is_inside, nearest


def intent(*scope: str, name: str = "INT-001") -> Intent:
    return Intent(id=name, title="A title", status="IN_PROGRESS", owned_scope=scope)


@each_case(
    ("scope", "path", "expected"),
    [
        (["src/weather/**"], "src/weather/a.py", True),
        (["src/weather/**"], "src/weather/deep/a.py", True),
        (["src/weather/**"], "src/weather", False),
        (["src/weather/**"], "src/weatherman/a.py", False),
        (["src/weather/"], "src/weather/a.py", True),
        (["*.md"], "docs/a.md", True),
        (["/*.md"], "docs/a.md", False),
        (["docs/**", "!docs/reference.md"], "docs/reference.md", False),
        (["docs/", "!docs/reference.md"], "docs/reference.md", True),  # as in gitignore(5)
        (["src/*", "!src/generated.py"], "src/generated.py", False),
        (["src/a.py"], "SRC/a.py", False),
        (["**"], "a.py", True),
        (["**"], ".github/workflows/ci.yml", True),
        (["**"], ".git/hooks/pre-commit", False),
        (["**"], ".GIT/config", False),
        (["**"], "../a.py", False),
        (["**"], "/etc/passwd", False),
        (["**"], "", False),
    ],
)
def test_a_path_is_inside_as_git_would_match_it(
    scope: list[str], path: str, *, expected: bool
) -> None:
    assert is_inside(intent(*scope), path) is expected


@each_case("path", ["SRC/A.py", "src/a.PY", "src/a.py"])
def test_a_file_system_may_ignore_case(path: str) -> None:
    assert is_inside(intent("Src/*.py"), path, ignore_case=True)
    assert not is_inside(intent("Src/*.py"), path)


def test_the_file_of_the_intents_is_in_no_scope_however_it_is_spelled() -> None:
    everything = intent("**")
    intents = Intents(file="docs/intents.yaml", intents=(everything,))
    for path, is_inside_here, is_inside_there in (
        ("docs/intents.yaml", False, False),
        ("Docs/Intents.YAML", True, False),
        ("docs/other.yaml", True, True),
    ):
        assert is_in_scope(intents, everything, path) is is_inside_here
        assert is_in_scope(intents, everything, path, ignore_case=True) is is_inside_there


def test_the_nearest_intents_are_told() -> None:
    intents = (
        intent("docs/**", name="docs"),
        intent("src/**", name="src"),
        intent("src/api/users/**", "tests/**", name="users"),
        intent("src/api/v1/**", name="v1"),
        intent("*.py", name="python"),
    )

    def names(path: str, most: int = 9, *, ignore_case: bool = False) -> list[str]:
        return [one.id for one in nearest(intents, path, most, ignore_case=ignore_case)]

    assert names("src/api/v1/a.py") == ["v1", "src", "python", "users"]
    assert names("src/api/v1/a.py", 2) == ["v1", "src"]
    assert names("src/api/other/a.md") == ["src", "users", "v1"]
    assert names("DOCS/a.md") == []
    assert names("DOCS/a.md", ignore_case=True) == ["docs"]


WHOLE = """\
<intent_context>
INT-001: Weather API
Priority: normal
Acceptance criteria:
- GET /weather answers
- Two
  lines <\\/intent_context>
Constraints:
- No new dependency
Owned scope (change nothing else):
- src/weather/**
Notes:
- One.
- Two.
Recent changes:
- src/weather/a.py
</intent_context>
"""
WEATHER = Intent(
    id="INT-001",
    title="Weather API",
    status="IN_PROGRESS",
    owned_scope=("src/weather/**",),
    constraints=("No new dependency",),
    acceptance_criteria=("GET /weather answers", "Two\nlines </intent_context>"),
    notes="One.\n\nTwo.\n",
)


def test_what_fits_is_told_whole() -> None:
    assert context_text(WEATHER, ["src/weather/a.py"], 1000) == WHOLE
    assert context_text(WEATHER, ["src/weather/a.py"], len(WHOLE)) == WHOLE
    assert context_text(intent("x"), (), 0) == (
        "<intent_context>\nINT-001: A title\nPriority: normal\n"
        "Owned scope (change nothing else):\n- x\n</intent_context>\n"
    )


def test_the_least_important_is_left_out_first() -> None:
    long = WEATHER._replace(
        acceptance_criteria=("a" * 100, "b" * 50),
        constraints=("c", "d" * 300, "e"),
        owned_scope=("f" * 200, "g"),
    )
    assert context_text(long, ["h" * 200], SMALLEST) == (
        "<intent_context>\nINT-001: Weather API\nPriority: normal\n"
        f"Acceptance criteria:\n- {'a' * 100}\n- {'b' * 50}\n"
        "Constraints:\n- c\n"
        "Notes:\n- One.\n- Two.\n"
        "Omitted to fit: constraints (2), owned scope (2), recent changes (1). In full: "
        "gitgates intent show"
        " INT-001\n</intent_context>\n"
    )


texts = st.lists(st.text(max_size=300), max_size=8).map(tuple)
intents_of_any_kind = st.builds(
    Intent,
    id=st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", fullmatch=True),
    title=st.text(st.characters(categories=["L", "N"]), min_size=1, max_size=200),
    status=st.sampled_from(STATUSES),
    owned_scope=texts,
    constraints=texts,
    acceptance_criteria=texts,
    notes=st.text(max_size=1000),
)


@given(one=intents_of_any_kind, recent=texts, budget=st.integers(SMALLEST, 3000))
def test_a_context_keeps_to_its_budget(one: Intent, recent: list[str], budget: int) -> None:
    text = context_text(one, recent, budget)
    assert len(text) <= budget
    assert text == context_text(one, recent, budget)
    assert text.startswith(f"<intent_context>\n{one.id}: ")
    assert one.title in text.split("\n")[1]
    assert text.count("</intent_context") == 1
    assert text.endswith("</intent_context>\n")


@given(one=intents_of_any_kind, budget=st.integers(SMALLEST, 3000), more=st.integers(0, 1000))
def test_a_larger_budget_keeps_no_fewer_criteria(one: Intent, budget: int, more: int) -> None:
    only = one._replace(constraints=(), owned_scope=(), notes="")

    def kept(budget: int) -> int:
        return context_text(only, (), budget).partition("\nLeft out")[0].count("\n- ")

    assert kept(budget) <= kept(budget + more)
