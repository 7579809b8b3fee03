"""The answer to a command before it runs, as the rules `lost_work` and `destructive` say."""

from __future__ import annotations

import tomllib

import pytest
from conftest import Repo
from template_support import copy_of
from undo_support import begin, place_of

from gitgates.config.parse import parse
from gitgates.config.read import Document
from gitgates.core.types import Config
from gitgates.features.undo.answer import Answer, answer, data
from gitgates.shell.options import read_options


@pytest.fixture(name="work")
def _work() -> Repo:
    return copy_of(begin)


def config_of(text: str = "") -> Config:
    config, problems = parse((Document("gitgates.toml", (), tomllib.loads(text)),))
    assert not [problem for problem in problems if not problem.deferred], problems
    return config


def asked(repo: Repo, command: str, rules: str = "") -> Answer | None:
    return answer(command, place_of(repo), config_of(f"[guard]\n{rules}"))


def action(repo: Repo, command: str, rules: str = "") -> str:
    found = asked(repo, command, rules)
    return found.action if found else ""


def test_what_is_saved_is_not_asked_about(work: Repo) -> None:
    work.write("base", "changed\n")
    for command in ("git clean -fd", "git reset --hard", "rm -rf base new", "echo x > new"):
        assert asked(work, command) is None, command


def test_what_cannot_be_saved_is_asked_about_with_the_reason(work: Repo) -> None:
    work.write("../out/file", "1\n")
    found = asked(work, "rm ../out/file new")
    assert found
    assert found.action == "ask"
    assert "guard rule `lost_work`: `rm ../out/file new` removes ../out/file." in found.text
    assert "It cannot be saved first. ../out/file: it is outside the repository." in found.text


def test_characters_that_a_terminal_acts_on_are_not_shown(work: Repo) -> None:
    work.write("../out/a\x1b[31m", "1\n")
    found = asked(work, "rm $'../out/a\\x1b[31m'")
    assert found
    assert found.text.replace("\n", "").isprintable()


# Of the rule `lost_work`: setting → the answer to `git clean -f`.
ANSWERS = {
    "": "",
    'lost_work = "save"': "",
    'lost_work = "ask"': "ask",
    'lost_work = "deny"': "deny",
    'lost_work = "off"': "",
    'lost_work = { "git clean *" = "ask" }': "ask",
    'lost_work = { "git clean -f" = "deny" }': "deny",
    'lost_work = { "git reset *" = "ask" }': "",
    'lost_work = { "*" = "ask", "git clean *" = "save" }': "",
    'lost_work = { "git clean *" = "save", "*" = "ask" }': "ask",
    'lost_work = { "git *" = "off" }': "",
    "lost_work = {}": "",
}


def test_the_configured_answer(work: Repo) -> None:
    assert {rules: action(work, "git -C . clean -f", rules) for rules in ANSWERS} == ANSWERS


def test_a_pattern_without_words_behind_it_matches(work: Repo) -> None:
    assert action(work, "git stash clear", 'lost_work = { "git stash clear *" = "ask" }') == "ask"


def test_settings_that_a_session_has_kept_are_lists(work: Repo) -> None:
    config = config_of('[guard]\nlost_work = { "git clean *" = "ask" }')
    kept = [list(pair) for pair in config.tables["guard"]["lost_work"]]
    tables = {**config.tables, "guard": {"lost_work": kept}}
    found = answer("git clean -f", place_of(work), config._replace(tables=tables))
    assert found
    assert found.action == "ask"


def test_the_strictest_answer_of_a_line_counts(work: Repo) -> None:
    rules = 'lost_work = { "rm *" = "deny" }'
    assert action(work, "git clean -f; rm new", rules) == "deny"
    assert action(work, "rm nowhere; git clean -f", rules) == ""


def test_a_configured_question_says_how_it_comes_back(work: Repo) -> None:
    found, refused = (asked(work, "git clean -f", f'lost_work = "{a}"') for a in ("ask", "deny"))
    assert found
    assert "to get it back afterwards: gitgates undo." in found.text
    assert refused  # nothing is destroyed
    assert "gitgates undo" not in refused.text


def test_a_shell_drops_the_character_that_no_path_has(work: Repo) -> None:
    for command in ("git $'\\x00' --hard", "cd $'\\0'; rm nowhere", "rm '\0'"):
        assert asked(work, command) is None, command


def test_nothing_is_asked_of_git_where_no_program_matters(work: Repo) -> None:
    broken = place_of(work)._replace(repo=None)  # type: ignore[arg-type]
    assert answer("echo a && ls -l | wc", broken, config_of()) is None


@pytest.mark.parametrize("value", ['"never"', '{ "git clean *" = "never" }', "1", '{ "" = "ask" }'])
def test_a_wrong_value_is_named(value: str) -> None:
    table = tomllib.loads(f"[guard]\nlost_work = {value}")
    _, problems = parse((Document("gitgates.toml", (), table),))
    (problem,) = problems
    assert "guard.lost_work" in problem.location
    assert "expected" in problem.message


# For each row of the list, in its order: a command that it is about, and one that it is not.
DESTRUCTIVE = [
    ("docker volume rm data", "docker volume ls"),
    ("docker system prune -af --volumes", "docker system prune"),
    ("docker compose down -v", "docker compose down"),
    ("docker-compose down --volumes", "docker-compose up -d"),
    ("psql -c 'DROP TABLE users'", "psql -c 'SELECT 1'"),
    ("mongosh --eval 'db.users.drop()'", "mongosh --eval 'db.users.find()'"),
    ("redis-cli FLUSHALL", "redis-cli get flush"),
    ("dropdb app", "dropdb --help"),
    ("terraform destroy -auto-approve", "terraform plan"),
    ("terraform apply -destroy", "terraform apply"),
    ("kubectl -n prod delete pod x", "kubectl delete pod x --dry-run=client"),
    ("helm uninstall app", "helm list"),
    ("aws s3 rm s3://b --recursive", "aws s3 ls s3://b"),
    ("aws s3 sync . s3://b --delete", "aws s3 sync . s3://b"),
    ("aws ec2 terminate-instances --instance-ids i", "aws ec2 describe-instances"),
    ("gsutil rm gs://b/x", "gsutil ls"),
    ("gcloud compute instances delete x", "gcloud compute instances list"),
    ("gh repo delete o/r --yes", "gh repo view"),
    ("gh api -X DELETE repos/o/r", "gh api repos/o/r"),
    ("npm publish", "npm publish --dry-run"),
    ("cargo publish", "cargo build"),
    ("twine upload dist/x", "twine check dist/x"),
    ("mkfs.ext4 /dev/sdb1", "mkfs.ext4 disk.img"),
    ("zfs destroy pool/x", "zfs list"),
    ("crontab -r", "crontab -l"),
    ("git push --force origin main", "git push origin main"),
]
PUSHES = {
    "git push -f": True,
    "git push -uf origin HEAD": True,
    "git push origin +main": True,
    "git push origin +HEAD:main": True,
    "git push origin :main": True,
    "git push --delete origin main": True,
    "git push --mirror": True,
    "git push -f origin side": False,
    "git push origin :side": False,
    "git push --force-with-lease": False,
    "git push -n -f origin main": False,
    "git push --force --dry-run": False,
    "echo git push -f": False,
    "sudo -u x git -C . push --force origin side:main": True,
    "echo 'DROP TABLE a;' | psql": True,
    "psql <<EOF\nselect 1;\ndrop  database x;\nEOF": True,
    "grep 'DROP TABLE' a.sql": False,
}
ON = 'destructive = "ask"'


def test_each_row_of_the_list_has_a_command() -> None:
    assert len(DESTRUCTIVE) == len(data()["command"])


def test_what_cannot_come_back_is_asked_about(work: Repo) -> None:
    for row, (command, harmless) in zip(data()["command"], DESTRUCTIVE, strict=True):
        found = asked(work, command, ON)
        assert found, command
        assert (found.action, row["what"] in found.text) == ("ask", True), command
        assert "guard rule `destructive`" in found.text
        assert asked(work, harmless, ON) is None, harmless
        assert asked(work, command) is None, command


def test_pushes_and_what_programs_read(work: Repo) -> None:
    assert {command: bool(asked(work, command, ON)) for command in PUSHES} == PUSHES


def test_the_default_branch_is_that_of_the_remote(work: Repo) -> None:
    work.git("symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/devel")
    assert asked(work, "git push -f origin devel", ON)
    assert asked(work, "git push -f origin main", ON) is None


def test_options_are_taken_apart() -> None:
    options = read_options(
        ("-qfb", "x", "-e1", "--exp=2", "--name", "3", "a", "--", "-f"), "be", ("--name",)
    )
    assert options.has("-q", "-z")
    assert options.has("--expire")
    assert not options.has("--e", "-x")
    assert options.values("-b", "-e", "--expire", "--name") == ("x", "1", "2", "3")
    assert (options.before, options.after, options.plain) == (("a",), ("-f",), ("a", "-f"))
