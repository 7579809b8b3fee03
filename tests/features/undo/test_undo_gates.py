"""What gates change that write is recorded, and undone with the work of the agent."""

from __future__ import annotations

from agent_support import begin
from conftest import Repo

CONFIG = """
[gates.format]
command = "sed -i s/wrong/right/ a.py"
writes = true
[hooks.PostToolUse]
enabled_tools = ["Write"]
gates = ["format"]
"""


def test_a_fixer_is_undone_with_what_it_has_fixed(repo: Repo) -> None:
    repo.write("a.py", "before\n")
    repo.commit("base")
    agent = begin(repo, CONFIG)
    agent.pre("Write", "a.py", tool_use_id="t1")
    repo.write("a.py", "wrong\n")
    agent.post("Write", "a.py", tool_use_id="t1")
    assert (repo.path / "a.py").read_text() == "right\n"
    listed = repo.gitgates("undo").stdout.decode()
    assert "PostToolUse: format" in listed
    assert "Write: a.py" in listed
    done = repo.gitgates("undo", "1")
    assert done.returncode == 0, done.stderr
    assert (repo.path / "a.py").read_text() == "before\n"
