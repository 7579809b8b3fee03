"""An agent wants to stop: what gates make of that, and what it and the person are told."""

from __future__ import annotations

from pathlib import Path

import pytest
from claude import Options, after, agent, bash, read, write
from scene import CHECK, STOP, Scene, gitgates_abs

OK = '[gates.ok]\ncommand = "echo ok >> ../ran"\n'


def test_a_failing_gate_blocks_and_a_fix_lets_go(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    run = scene.run(write(scene.at("bad.txt"), "x"), "first", bash("mv bad.txt good.txt"), "second")
    told = run.told(2)
    assert "check" in told
    assert "failed" in told
    assert "attempt 1 of 4" in told
    assert "BAD-IS-THERE" in told
    assert "gitgates cannot-fix" in told
    assert (run.turns, run.ends, scene.ran()) == (4, ["completed"], 2)
    assert run.results[0]["result"] == "second"


@pytest.mark.nightly
def test_what_passed_at_once_is_silent(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    run = scene.run(write(scene.at("good.txt"), "x"), "end")
    assert (run.turns, scene.ran(), run.answers("Stop"), run.person) == (2, 1, [], "")


@pytest.mark.nightly
def test_talk_after_a_pass_runs_nothing_again(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    work = (write(scene.at("good.txt"), "x"), "done")
    look = (read(scene.at("good.txt")), bash("true"), "well")
    run = scene.run(*work, "because", *look, prompts=("one", "why?", "look"))
    assert [r["result"] for r in run.results] == ["done", "because", "well"]
    assert scene.ran() == 1  # the tools have left everything as it was


@pytest.mark.nightly
def test_a_gate_that_changes_a_file_is_told_with_the_next_prompt(tmp_path: Path) -> None:
    scene = Scene(tmp_path, f"[gates.check]\ncommand = 'sed -i s/x/y/ a.txt'\n{STOP}")
    run = scene.run(write(scene.at("a.txt"), "x\n"), "done", "read it", prompts=("one", "two"))
    assert [r["result"] for r in run.results] == ["done", "read it"]
    assert "A gate changed files; read them again before the next edit: a.txt." in run.told(2)


@pytest.mark.nightly
def test_what_is_mended_outside_of_the_repository_is_noticed(tmp_path: Path) -> None:
    scene = Scene(tmp_path, f"[gates.check]\ncommand = 'test -e ../mended'\n{STOP}")
    run = scene.run(write(scene.at("a.txt"), "x"), "same", bash("touch ../mended"), "same", "3")
    assert "attempt 1 of 4" in run.told(2)
    assert (run.turns, run.ends) == (4, ["completed"])


@pytest.mark.nightly
def test_an_agent_that_does_nothing_is_told_so(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    run = scene.run(write(scene.at("bad.txt"), "x"), "1", "2", bash("mv bad.txt good.txt"), "3")
    assert "attempt 2 of 4" in run.told(3)
    assert "BAD-IS-THERE" in run.told(3)
    assert (scene.ran(), run.results[0]["result"]) == (3, "3")


@pytest.mark.nightly
def test_each_attempt_is_counted(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    run = scene.run(write(scene.at("bad.txt"), "x"), "1", bash("echo y >> bad.txt"), "2", "3")
    assert "attempt 1 of 4" in run.told(2)
    assert "attempt 2 of 4" in run.told(4)


def test_used_up_retries_let_go_and_the_next_prompt_starts_afresh(tmp_path: Path) -> None:
    scene = Scene(tmp_path, CHECK + STOP + "max_retries = 1\n")
    first = (write(scene.at("bad.txt"), "x"), "1", "2")
    second = (write(scene.at("other.txt"), "x"), "3", bash("mv bad.txt good.txt"), "4")
    run = scene.run(*first, *second, prompts=("one", "two"))
    assert "attempt 1 of 2" in run.told(2)
    assert [r["result"] for r in run.results] == ["2", "4"]
    assert "check" in run.person
    assert "check" in run.told(3)  # with the prompt: what the agent left behind
    assert "attempt 1 of 2" in run.told(5)
    assert run.end["turns_left"] == {}


@pytest.mark.nightly
def test_used_up_retries_stop_the_agent_where_that_is_wanted(tmp_path: Path) -> None:
    scene = Scene(tmp_path, CHECK + STOP + 'max_retries = 1\non_exhausted = "stop"\n')
    run = scene.run(write(scene.at("bad.txt"), "x"), "1", "2", "3")
    assert (run.turns, run.ends) == (3, ["stop_hook_prevented"])
    assert "check" in run.answers("Stop")[-1]["stopReason"]


@pytest.mark.nightly
def test_an_agent_that_cannot_fix_it_is_let_go(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    give_up = bash("gitgates cannot-fix check --reason 'only a person can'")
    run = scene.run(write(scene.at("bad.txt"), "x"), "1", give_up, "2", "3")
    assert (run.turns, run.results[0]["result"]) == (4, "2")
    assert "check" in run.person


@pytest.mark.nightly
def test_a_failure_in_what_somebody_else_writes_names_it(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    scene.add_hook("sleep 1; echo x > bad.txt", "PostToolUse")  # after ours has looked
    say = "gitgates cannot-fix check --reason 'somebody else is writing bad.txt'"
    run = scene.run(write(scene.at("good.txt"), "x"), "1", bash(say), "2")
    assert "changed by somebody else in the meantime: bad.txt" in run.told(2)
    assert (run.turns, run.results[0]["result"]) == (4, "2")
    assert "somebody else is writing bad.txt" in run.person


@pytest.mark.nightly
def test_settings_that_a_person_is_editing_are_told_to_them(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    scene.add_hook("echo '[[[' >> pyproject.toml", "PostToolUse")
    run = scene.run(read(scene.at("seed.txt")), "because")
    assert (run.turns, run.results[0]["result"]) == (2, "because")
    assert "pyproject.toml" in run.person


@pytest.mark.nightly
def test_the_person_is_told_why_the_agent_cannot_fix_it(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    give_up = bash("gitgates cannot-fix check --reason 'only a person can'")
    run = scene.run(write(scene.at("bad.txt"), "x"), "1", give_up, "2")
    assert "only a person can" in run.person


@pytest.mark.nightly
def test_the_breaker_lets_go_whatever_else_is_configured(tmp_path: Path) -> None:
    config = f"breaker = {{ prompt = 2, session = 9 }}\n{CHECK}{STOP}max_retries = 50\n"
    scene = Scene(tmp_path, config)
    grow = bash("echo y >> bad.txt")
    run = scene.run(write(scene.at("bad.txt"), "x"), "1", grow, "2", grow, "3", grow, "4")
    assert (run.turns, run.results[0]["result"]) == (6, "3")
    assert "check" in run.person


@pytest.mark.nightly
def test_attempts_are_our_own_count_whatever_other_hooks_block(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    scene.repo.write("said", '{"decision": "block", "reason": "SOMEBODY-ELSE"}')
    scene.add_hook("cat said 2>/dev/null; rm -f said", "Stop")
    run = scene.run("1", write(scene.at("bad.txt"), "x"), "2", bash("mv bad.txt good.txt"), "3")
    assert "SOMEBODY-ELSE" in run.told(1)
    assert "attempt 1 of 4" in run.told(3)
    assert run.results[0]["result"] == "3"


@pytest.mark.nightly
def test_a_session_that_is_gone_on_with_remembers(tmp_path: Path) -> None:
    scene = Scene(tmp_path, CHECK + STOP + "max_retries = 1\n")
    first = scene.run(write(scene.at("bad.txt"), "x"), "1", "2")
    again = scene.run("3", "4", "5", options=Options(resume=first.session))
    assert "check" in again.told(0)  # what was left behind
    assert "BAD-IS-THERE" in again.told(1)
    assert again.turns == 2


@pytest.mark.nightly
def test_all_failures_are_told_at_once_where_that_is_wanted(tmp_path: Path) -> None:
    other = '[gates.other]\ncommand = "echo OTHER-BAD; exit 3"\n'
    both = '[hooks.Stop]\ngates = ["check", "other"]\nstrategy = "collect"\n'
    scene = Scene(tmp_path, CHECK + other + both)
    run = scene.run(write(scene.at("bad.txt"), "x"), "1")
    told = run.told(2)
    assert all(word in told for word in ("check", "BAD-IS-THERE", "other", "OTHER-BAD"))


def test_a_gate_gets_none_of_the_clients_credentials(tmp_path: Path) -> None:
    scene = Scene(tmp_path, '[gates.check]\ncommand = "env > ../env"\n' + STOP)
    scene.run(write(scene.at("a.txt"), "x"), "1")
    env = (tmp_path / "env").read_text()
    assert "PATH=" in env
    assert "no-key" not in env
    assert "TOKEN" not in env


@pytest.mark.nightly
def test_a_stop_ends_the_turn(tmp_path: Path) -> None:
    scene = Scene(tmp_path, CHECK + 'on_fail = "STOP"\n' + STOP)
    run = scene.run(write(scene.at("bad.txt"), "x"), "1", "2")
    assert (run.turns, run.ends) == (2, ["stop_hook_prevented"])
    assert "check" in run.answers("Stop")[0]["stopReason"]


@pytest.mark.nightly
def test_a_session_that_changed_nothing_is_not_checked(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    scene.repo.write("bad.txt", "was here before")
    run = scene.run(bash("ls"), "end")
    assert (run.turns, scene.ran(), run.person) == (2, 0, "")


def test_what_the_agent_commits_is_checked_all_the_same(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    commit = bash("git add -A && git -c user.name=a -c user.email=a@b.c commit -qm x")
    run = scene.run(write(scene.at("bad.txt"), "x"), commit, "1", bash("mv bad.txt good.txt"), "2")
    assert "BAD-IS-THERE" in run.told(3)
    assert run.results[0]["result"] == "2"


@pytest.mark.nightly
def test_plan_mode_is_not_checked(tmp_path: Path) -> None:
    scene = Scene(tmp_path, CHECK + STOP + "max_retries = 0\n")
    first = scene.run(write(scene.at("bad.txt"), "x"), "end")
    assert scene.ran() == 1
    plan = scene.run("end", options=Options(mode="plan", resume=first.session))
    assert (plan.turns, scene.ran(), plan.answers("Stop")) == (1, 1, [])


def test_a_warning_reaches_the_person_at_once_and_the_agent_with_the_next_prompt(
    tmp_path: Path,
) -> None:
    scene = Scene(tmp_path, CHECK + 'on_fail = "CONTINUE"\n' + STOP)
    run = scene.run(write(scene.at("bad.txt"), "x"), "1", "2", "3", prompts=("one", "two"))
    assert [r["result"] for r in run.results] == ["1", "2"]
    assert "check" in run.person
    assert "BAD-IS-THERE" not in run.told(1)
    assert "check" in run.told(2)


CHAIN = CHECK + 'on_fail = "fix"\n[gates.fix]\ncommand = "mv bad.txt good.txt"\n' + STOP


@pytest.mark.nightly
def test_a_failure_that_another_gate_mends_is_a_warning(tmp_path: Path) -> None:
    scene = Scene(tmp_path, CHAIN)
    run = scene.run(write(scene.at("bad.txt"), "x"), "1", "2", prompts=("one", "two"))
    assert scene.at("good.txt").exists()
    assert [r["result"] for r in run.results] == ["1", "2"]
    assert "check" in run.person


@pytest.mark.nightly
def test_what_another_gate_mended_the_agent_is_not_asked_to_fix(tmp_path: Path) -> None:
    scene = Scene(tmp_path, CHAIN)
    run = scene.run(write(scene.at("bad.txt"), "x"), "1", "2", prompts=("one", "two"))
    assert "check" in run.told(2)
    assert "Fix it" not in run.told(2)


@pytest.mark.nightly
def test_a_baseline_failure_does_not_block_and_a_new_one_does(tmp_path: Path) -> None:
    each = "for f in bad*; do [ ! -e $f ] || { echo failure: $f; s=1; }; done; exit ${s:-0}"
    gate = f"[gates.check]\ncommand = '{each}'\nfailures = '^failure: .*$'\nbaseline = true\n"
    scene = Scene(tmp_path, gate + STOP)
    scene.repo.write("bad-old.txt", "was here before")
    run = scene.run(
        *(write(scene.at("good.txt"), "x"), "1"),
        *(write(scene.at("bad-new.txt"), "x"), "2", bash("rm bad-new.txt"), "3"),
        prompts=("one", "two"),
    )
    assert [r["result"] for r in run.results] == ["1", "3"]
    assert "bad-new.txt" in run.told(4)


@pytest.mark.nightly
def test_an_observed_gate_decides_nothing(tmp_path: Path) -> None:
    scene = Scene(tmp_path, CHECK + "observe = true\n" + STOP)
    run = scene.run(write(scene.at("bad.txt"), "x"), "1", "2")
    assert (run.turns, scene.ran()) == (2, 1)
    assert "check" in run.person


@pytest.mark.nightly
def test_a_gate_that_is_too_slow_for_the_hook_is_reported_as_such(tmp_path: Path) -> None:
    slow = '[gates.slow]\ncommand = "[ -e mended ] || sleep 60"\n'
    hook = '[hooks.Stop]\ngates = ["slow", "ok"]\ntimeout = "1s"\nstrategy = "collect"\n'
    scene = Scene(tmp_path, f"jobs = 1\n{slow}{OK}{hook}")
    run = scene.run(write(scene.at("a.txt"), "x"), "1", bash("touch mended"), "2")
    assert "slow" in run.told(2)
    assert "timed out" in run.told(2)
    assert "ok" in run.told(2)
    assert (run.results[0]["result"], scene.ran("ok")) == ("2", 1)


@pytest.mark.nightly
def test_a_gate_that_cannot_start_is_reported_as_such(tmp_path: Path) -> None:
    gate = '[gates.check]\ncommand = ["no-such-program-at-all"]\n'
    scene = Scene(tmp_path, gate + STOP)
    run = scene.run(write(scene.at("a.txt"), "x"), "1", "2", "3", "4", "5")
    assert "check" in run.told(2)
    assert "could not be started" in run.told(2)
    assert run.turns == 3  # once is enough: no attempt of the agent changes it
    assert "check" in run.person


@pytest.mark.nightly
def test_two_hooks_at_once_run_the_gates_once(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    scene.add_hook(f"{gitgates_abs()} agent-hook claude", "UserPromptSubmit", "Stop")
    scene.commit()
    run = scene.run(write(scene.at("bad.txt"), "x"), "1", bash("mv bad.txt good.txt"), "2")
    one, other = run.answers("Stop")
    assert one == other
    assert "attempt 1 of 4" in run.told(2)
    assert (run.turns, scene.ran(), len(run.hooks("Stop"))) == (4, 2, 4)


@pytest.mark.nightly
def test_a_background_process_of_a_gate_does_not_hold_up_the_answer(tmp_path: Path) -> None:
    gate = '[gates.check]\ncommand = "echo check >> ../ran; sleep 30 & exit 1"\n'
    scene = Scene(tmp_path, gate + STOP + "max_retries = 1\n")
    run = scene.run(write(scene.at("a.txt"), "x"), "1", "2")
    assert "failed" in run.told(2)
    assert run.end["took_s"] < 10


@pytest.mark.nightly
def test_a_background_shell_defers_nothing(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    shell = bash("sleep 1.5", run_in_background=True)
    run = scene.run(shell, write(scene.at("bad.txt"), "x"), "1", bash("mv bad.txt good.txt"), "2")
    assert "BAD-IS-THERE" in run.told(3)
    assert run.results[0]["result"] == "2"


def test_a_background_agent_defers_and_the_next_stop_is_checked(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    run = scene.run(
        *(write(scene.at("bad.txt"), "x"), agent("WORD", background=True), "waiting"),
        *("after it", bash("mv bad.txt good.txt"), "end"),
        agents={"WORD": [after(0.5, "report", main_turns=3)]},
    )
    assert run.answers("Stop")[0]["decision"] == "block"
    assert len(run.hooks("Stop")) == 3
    assert "BAD-IS-THERE" in run.told(4)
    assert (scene.ran(), run.end["turns_left"]) == (2, {})


@pytest.mark.nightly
def test_background_agents_defer_at_most_three_times(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    words = [f"WORD-{i}" for i in range(5)]
    starts = tuple(agent(word, background=True) for word in words)
    run = scene.run(
        *(
            write(scene.at("bad.txt"), "x"),
            starts,
            "w1",
            "w2",
            "w3",
            "w4",
            bash("mv bad.txt good.txt"),
        ),
        agents={word: [after(0.1, "report", main_turns=3 + i)] for i, word in enumerate(words)},
    )
    answers = [hook.answer.get("decision") for hook in run.hooks("Stop")]
    assert answers[:4] == [None, None, None, "block"]
    assert "attempt 1 of 4" in run.told(6)


def test_a_killed_hook_leaves_a_usable_journal(tmp_path: Path) -> None:
    die = "[ -e ../died ] || { touch ../died; kill -9 $PPID; sleep 1; }"
    gate = f"[gates.check]\ncommand = '{die}; echo BAD; exit 1'\n"
    scene = Scene(tmp_path, gate + STOP + "max_retries = 1\n")
    run = scene.run(
        *(write(scene.at("a.txt"), "x"), "1", write(scene.at("b.txt"), "x"), "2", "3"),
        prompts=("one", "two"),
    )
    assert [r["result"] for r in run.results] == ["1", "3"]
    assert "attempt 1 of 2" in run.told(4)
    assert any(fact.get("outcome") == "blocked" for fact in scene.journal(run.session))


@pytest.mark.nightly
def test_switched_off_nothing_is_checked(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    off = Options(env={"GITGATES": "0"})
    run = scene.run(write(scene.at("bad.txt"), "x"), "end", options=off)
    assert (run.turns, scene.ran(), run.person) == (2, 0, "")
    assert {hook.stdout + hook.stderr for hook in run.hooks("Stop")} == {""}
    assert not scene.at(".git/gitgates/sessions").exists()


def test_from_nothing_to_a_blocked_stop_in_one_command(tmp_path: Path) -> None:
    scene = Scene(tmp_path, "")
    (scene.path / ".claude/settings.json").unlink()
    scene.repo.write("Makefile", "lint:\n\ttest ! -e bad.txt || { echo BAD-IS-THERE; exit 1; }\n")
    scene.commit()
    done = scene.repo.gitgates("install-hooks", "--agent", "claude", "--yes")
    assert done.returncode == 0, done.stderr
    scene.commit()
    run = scene.run(write(scene.at("bad.txt"), "x"), "first", bash("mv bad.txt good.txt"), "second")
    assert "BAD-IS-THERE" in run.told(2)
    assert "gates failed (`lint`)" in run.told(2)
    assert (run.turns, run.ends) == (4, ["completed"])


def test_a_turn_that_ends_with_a_question(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    ask = bash("gitgates cannot-fix --question 'Which name?'")
    run = scene.run(
        *(write(scene.at("bad.txt"), "x"), ask, "which?", "well"), prompts=("go", "any")
    )
    first, second = (answer.get("systemMessage", "") for answer in run.answers("Stop")[:2])
    assert "stop because it has a question: Which name?" in first
    assert "BAD-IS-THERE" in run.told_ever()
    assert "Which name?" not in second
    assert run.answers("Stop")[1]["decision"] == "block"
