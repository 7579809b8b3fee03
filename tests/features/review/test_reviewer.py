"""What a prompt asks of the strict form, and what the reviewer may do in it."""

from __future__ import annotations

from config_support import table
from each_case import each_case

from gitgates.features.review.config import Review
from gitgates.features.review.reviewer import refuse_tool, split_commands, switch_in

ALLOWED = table(Review).reviewer_commands


@each_case(
    ("prompt", "asks"),
    [
        ("#review", "on"),
        ("#review fix it", "on"),
        ("#Review\nfix it", "on"),
        ("#REVIEW\tfix it", "on"),
        ("  #review fix it", "on"),
        ("#review:stop", "off"),
        ("#review :stop", "on"),
        ("#review stop it", "on"),
        ("#review:STOP now", "off"),
        ("#reviewfix", ""),
        ("#review:other", ""),
        ("#review, please", ""),
        ("#review:stopit", ""),
        ("please #review", ""),
        ("", ""),
        (" ", ""),
        ("review", ""),
    ],
)
def test_what_a_prompt_asks(prompt: str, asks: str) -> None:
    assert switch_in(prompt, "#review") == asks


def test_another_prefix_and_none() -> None:
    assert switch_in("#ALICE go", "#alice") == "on"
    assert switch_in("#alice:stop", "#Alice") == "off"
    assert switch_in("#review go", "#alice") == ""
    assert switch_in("", "") == ""
    assert switch_in(":stop", "") == ""


@each_case(
    "command",
    [
        "git diff",
        "git diff HEAD~1 -- 'a b.py' | head -100",
        "git log --oneline -5 && git show HEAD",
        "git show HEAD@{1}:a.py 2>/dev/null | grep -n x | wc -l",
        "git diff 2>&1; git log",
        "git diff --text --stat",
        "git log --format='%H $x `y`'",
        "gitgates review done --decision ISSUES --summary 'costs $5 & more > less'",
        "gitgates review diff\ngitgates review status",
        "gitgates journal read review/abc",
        "git diff \\\n  --stat",
        "cat a.py",
        "git log --output-indicator-new=x",
        "git show HEAD^{tree} stash@{0}",
        "git --no-pager diff && git -P log && git -C sub diff",
        "cd sub && ls -l && pwd; echo done",
        "git diff -- '*.py'",
        "gitgates journal export",
        "",
    ],
)
def test_what_the_reviewer_may_run(command: str) -> None:
    assert refuse_tool("shell", "Bash", command, ALLOWED) == ""


@each_case(
    "command",
    [
        "rm a.py",
        'git log --format="%H \\$x"',
        "git diff -- a\\ b",
        "git diff # what is there",
        "git commit -am x",
        "git diff; rm a.py",
        "git diff && rm a.py",
        "git diff | tee a.py",
        "git diff\nrm a.py",
        "git diff > a.py",
        "git diff >> a.py",
        "git diff 2> a.py",
        "git diff 2>/dev/null/x",
        "git diff >/dev/nullx",
        "git diff & rm a.py",
        "git diff $(rm a.py)",
        "git diff `rm a.py`",
        'git diff "$(rm a.py)"',
        'git diff "`rm a.py`"',
        "git diff <(rm a.py)",
        "git diff --output=a.py",
        "git diff --outp=a.py",
        "git log --ext-diff -p",
        "git show --textconv",
        "git -c core.pager='rm a.py' diff",
        "GIT_EXTERNAL_DIFF=x git diff",
        "X=1 git diff",
        "git diffx",
        "(git diff)",
        "{ git diff; }",
        "! git diff",
        "git diff 'x",
        'git diff "x',
        "gitgates run Stop",
        "sort -o a.py b.py",
        "python -c 'x'",
        "env git diff",
        "git diff ${IFS}",
        "git diff \0",
        "git log -1 # it's\nsed -i s/7/8/ a.py # isn't",
        "git diff --stat # what's\ncp a.py b.py # don't",
        "git diff --outpu{t,t}=d.py",
        "git diff --out{put=e.py,put=e.py}",
        "git diff {--output=q.py,HEAD}",
        "git diff {--output=q.py..HEAD}",
        "git diff --outpu?=d.py",
        "git diff --out*",
        "git diff -- *.md",
        "git --no-pager diff --output=x",
        "git --no-pager commit",
        "git -C sub commit",
        "git -C diff",
        "git --exec-path=. diff",
        "gitgates journal export --output seed.py",
        "gitgates journal export -o seed.py",
        "gitgates journal export -oseed.py",
        "git",
        "git diff ';' cat --output=x",
        "git log a#b; rm x",
        "git log a\\\n#b; rm x",
        "git log #\\\nrm x",
        "git log \\ #; rm x",
        'git diff "--out\\\nput=x"',
        "git diff '--outpu'?=x",
        "git diff ''--out*",
    ],
)
def test_what_the_reviewer_may_not_run(command: str) -> None:
    assert refuse_tool("shell", "Bash", command, ALLOWED) != ""


def test_tools() -> None:
    assert refuse_tool("reads", "Read", "", ALLOWED) == ""
    assert refuse_tool("reads", "Grep", "", ()) == ""
    refused = refuse_tool("writes", "Write", "", ALLOWED)
    assert refused == "The reviewer may only read: it may not use Write."
    assert refuse_tool("other", "mcp__x__y", "", ALLOWED).endswith("may not use mcp__x__y.")
    assert refuse_tool("agent", "Agent", "", ALLOWED) != ""
    assert refuse_tool("shell", "Bash", "make test", ()).count("It may run: none; and head, ") == 1
    assert refuse_tool("shell", "Bash", "make test", ("make test",)) == ""
    assert refuse_tool("shell", "Bash", "make testing", ("make test",)) != ""


def test_words_are_those_of_the_shell() -> None:
    text = "a 'b c' \"d 'e\"f; h''i | j \"\" k"
    assert split_commands(text) == [["a", "b c", "d 'ef"], ["hi"], ["j", "", "k"]]
