"""`[[tool.gitgates.advice]]`: every rule, and how two files come together."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from config_support import fatal, read, table
from each_case import each_case

from gitgates.config.load import load
from gitgates.config.weaker import weaker_entry
from gitgates.features.advice.items import Advice, advice_of, content_hash
from gitgates.features.advice.keys import slug

HOOK = 'hook_command = "make test"\nhook_trigger = "before-commit"\n'


def one(text: str) -> Advice:
    config, said, deferred = read(f'[[advice]]\ntitle = "Run the tests"\n{text}')
    assert (said, deferred) == ("", "")
    return advice_of(config)[0]


def test_without_a_command_it_is_guidance() -> None:
    assert one("") == table(Advice, id="run-the-tests", title="Run the tests")
    assert advice_of(read("jobs = 1")[0]) == ()


def test_all_keys() -> None:
    assert one(
        'id = "bd-1"\ndescription = "a\\nb"\nstatus = "pinned"\npriority = 0\n'
        'created_at = "2026-01-31T13:00:00+01:00"\n'
        'rig = "beads"\nrole = "polecat"\nagent = "toast"\n'
        f'{HOOK}hook_timeout = "2m"\nhook_on_failure = "block"\n'
    ) == Advice(
        id="bd-1",
        title="Run the tests",
        description="a\nb",
        status="pinned",
        priority=0,
        created_at="2026-01-31T12:00:00Z",
        rig="beads",
        role="polecat",
        agent="toast",
        hook_command="make test",
        hook_trigger="before-commit",
        hook_timeout_s=120.0,
        hook_on_failure="block",
    )


@each_case(("written", "seconds"), [("0", 30), ("1", 1), ("300", 300), ("1.5", 1.5)])
def test_timeout(written: str, seconds: float) -> None:
    assert one(f"{HOOK}hook_timeout = {written}").hook_timeout_s == seconds


@each_case(
    ("written", "stored"),
    [
        ("2026-01-31T12:00:00Z", "2026-01-31T12:00:00Z"),
        ("2026-01-31", "2026-01-31T00:00:00Z"),
        ('"2026-01-31"', "2026-01-31T00:00:00Z"),
        ("2026-01-31T12:00:00", "2026-01-31T12:00:00Z"),
    ],
)
def test_times_of_toml_and_texts(written: str, stored: str) -> None:
    assert one(f"created_at = {written}").created_at == stored


@each_case(
    ("key", "value", "message"),
    [
        ("id", '"a b"', 'got "a b", expected 1 to 100 letters, digits, `.`, `_` and `-`'),
        ("title", '"a\\nb"', 'got "a\\nb", expected text on one line that is not empty'),
        ("title", '" "', 'got " ", expected text on one line that is not empty'),
        ("description", "1", "got 1, expected text in quotes"),
        ("status", '"done"', 'got "done", expected one of open, pinned, closed, tombstone'),
        ("priority", "5", "got 5, expected a whole number from 0, the highest, to 4"),
        ("priority", "-1", "got -1, expected a whole number from 0, the highest, to 4"),
        (
            "created_at",
            '"now"',
            'got "now", expected a time such as "2026-01-31T12:00:00Z"',
        ),
        ("created_at", "1", 'got 1, expected a time such as "2026-01-31T12:00:00Z"'),
        ("rig", '""', 'got "", expected text on one line that is not empty'),
        ("role", "1", "got 1, expected text on one line that is not empty"),
        ("agent", "[]", "got [], expected text on one line that is not empty"),
        (
            "hook_command",
            '" "',
            'got " ", expected a shell command in quotes, of at most 1,000 characters',
        ),
        (
            "hook_trigger",
            '"before-lunch"',
            (
                'got "before-lunch", expected one of session-end, before-commit, before-push, '
                "before-handoff. Did you mean `before-push`?"
            ),
        ),
        (
            "hook_timeout",
            "301",
            "got 301, expected from 1 to 300 seconds, or 0 for the default of 30",
        ),
        (
            "hook_timeout",
            "-1",
            "got -1, expected from 1 to 300 seconds, or 0 for the default of 30",
        ),
        ("hook_on_failure", '"stop"', 'got "stop", expected one of block, warn, ignore'),
        ("hook_comand", '"x"', "unknown key. Did you mean `hook_command`?"),
    ],
)
def test_bad_values(key: str, value: str, message: str) -> None:
    table = {"title": '"x"', "hook_command": '"true"', "hook_trigger": '"before-push"'}
    table |= {"id": '"x"', key: value}
    lines = "".join(f"{k} = {v}\n" for k, v in table.items())
    assert fatal(f"[[advice]]\n{lines}") == f"gitgates.toml: advice.x.{key}: {message}"


def test_command_is_at_most_1000_characters() -> None:
    assert len(one(HOOK.replace("make test", "x" * 1000)).hook_command) == 1000
    said = fatal(f'[[advice]]\ntitle = "a"\n{HOOK.replace("make test", "x" * 1001)}')
    assert said.endswith("expected a shell command in quotes, of at most 1,000 characters")


@each_case(
    ("table", "message"),
    [
        (
            'hook_command = "true"',
            "advice.a: has a `hook_command` but no `hook_trigger`. Add one: ",
        ),
        (
            'hook_trigger = "before-push"',
            "advice.a.hook_trigger: requires `hook_c",
        ),
        ("hook_timeout = 3", "advice.a.hook_timeout: requires `hook_command`"),
        (
            'hook_on_failure = "warn"',
            "advice.a.hook_on_failure: requires `hook_co",
        ),
    ],
)
def test_keys_of_a_hook_belong_together(table: str, message: str) -> None:
    said = fatal(f'[[advice]]\ntitle = "a"\n{table}')
    assert said.startswith(f"gitgates.toml: {message}")
    assert "\n" not in said


def test_all_problems_at_once() -> None:
    assert fatal('[[advice]]\npriority = 9\n[[advice]]\ntitle = "b"\n[[advice]]\nid = "b"\n') == (
        "gitgates.toml: advice[0]: has no `title`\n"
        "gitgates.toml: advice.0.priority: got 9, expected a whole number from 0, the highest, "
        "to 4\n"
        "gitgates.toml: advice[2]: `b` is defined twice. Give one of them a different `id`."
    )
    assert fatal("advice = 1") == (
        "gitgates.toml: advice: got 1, expected an array of tables. Try "
        '[[advice]] with title = "Run the tests".'
    )
    assert fatal("advice = [1]") == "gitgates.toml: advice[0]: got 1, expected a table"


def test_local_advice_is_added() -> None:
    config, said, deferred = read('[[advice]]\ntitle = "a"', '[[advice]]\ntitle = "b"')
    assert ([one.id for one in advice_of(config)], said, deferred) == (["a", "b"], "", "")


def test_local_advice_does_not_replace_shared_advice() -> None:
    shared = f'[[advice]]\ntitle = "a"\n{HOOK}'
    config, said, deferred = read(shared, '[[advice]]\ntitle = "a"\nstatus = "closed"')
    assert (advice_of(config)[0].status, said) == ("open", "")
    assert deferred == (
        "gitgates.local.toml: advice.a: is also in gitgates.toml, which takes precedence. Give "
        "the local "
        "one a different `id`."
    )


@each_case(
    ("title", "name"),
    [
        ("Always run tests", "always-run-tests"),
        ("  «Nie» ohne Tests!  ", "nie-ohne-tests"),
        ("Über Öl: é", "uber-ol-e"),
        ("日本語", "a80b52e5"),
        ("第2", "2-70eba0fc"),
        ("", ""),
        ("x" * 99, "x" * 60),
    ],
)
def test_ids_are_made_of_titles(title: str, name: str) -> None:
    assert slug(title) == name


def test_cached_configuration_has_it(tmp_path: Path) -> None:
    (tmp_path / "gitgates.toml").write_text(f'[[advice]]\ntitle = "a"\n{HOOK}')
    cache = str(tmp_path / "state" / "config.marshal")
    first, second = (load(str(tmp_path), cache) for _ in range(2))
    assert first
    assert advice_of(first)
    assert repr(first) == repr(second)


def test_every_field_is_in_the_hash() -> None:
    plain = table(Advice, title="a")
    changes: list[dict[str, Any]] = [{name: "x"} for name in Advice._fields]
    others = [plain._replace(**one) for one in changes]
    assert len({content_hash(one) for one in (plain, *others)}) == len(others) + 1


BLOCKS = f'{HOOK}hook_timeout = 60\nhook_on_failure = "block"'


@each_case(
    ("old", "new", "texts"),
    [
        (BLOCKS, BLOCKS, []),
        (BLOCKS, f"{BLOCKS}\npriority = 4\ndescription = 'b'", []),
        (BLOCKS, None, ["advice.run-the-tests: removed"]),
        (
            BLOCKS,
            f"{BLOCKS}\nstatus = 'closed'",
            ["advice.run-the-tests.status: `open` → `closed`"],
        ),
        (BLOCKS, f"{BLOCKS}\nrig = 'b'", ["advice.run-the-tests.rig: nothing → `b`"]),
        (
            BLOCKS,
            f'{HOOK.replace("make test", "true")}hook_timeout = 20\nhook_on_failure = "warn"',
            [
                "advice.run-the-tests.hook_command: `make test` → `true`",
                "advice.run-the-tests.hook_timeout: 60 → 20",
                "advice.run-the-tests.hook_on_failure: `block` → `warn`",
            ],
        ),
        (HOOK, None, []),
        (f"{BLOCKS}\nstatus = 'closed'", None, []),
    ],
)
def test_what_makes_it_weaker(old: str, new: str | None, texts: list[str]) -> None:
    changed = None if new is None else one(new)._asdict()
    assert weaker_entry("advice", one(old)._asdict(), changed) == texts
