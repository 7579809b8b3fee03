"""The lines of docs/how-to/proofs.md confirm a signature without gitgates."""

from __future__ import annotations

import re
from pathlib import Path

from conftest import Repo
from hook_support import commit
from proof_support import CI, edited, make_key, sign_with, signer, trusting

PAGE = Path(__file__).resolve().parents[3] / "docs/how-to/proofs.md"


def test_the_lines_of_the_page_confirm_a_signature(repo: Repo) -> None:
    (lines,) = re.findall(r"```sh\n(git notes.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    key = make_key(repo.path.parent / "key")
    trusting(repo, signer(CI, key))
    sign_with(repo, key)
    repo.shim("pre-commit")
    repo.write("a.py", "a = 1\n")
    repo.git("add", ".")
    assert commit(repo).returncode == 0
    assert repo.gitgates("proof", "sign").returncode == 0
    done = repo.ask("sh", "-e", "-c", lines)
    tree = repo.git("rev-parse", "HEAD^{tree}")
    assert done.returncode == 0, done.stderr
    good, *said = done.stdout.decode().splitlines()
    assert re.fullmatch(rf'Good "gitgates" signature for {CI} with ED25519 key SHA256:\S+', good)
    assert {f'  "gitTree": "{tree}"', '  "all",', '  "py"'} <= {*said}
    note = repo.git("notes", "--ref=gitgates", "show", "HEAD^{tree}").encode()
    repo.write("proof.json", edited(note, lambda payload: payload["subject"].pop()))
    done = repo.ask("sh", "-e", "-c", lines.replace(lines.splitlines()[0], ""))
    assert b"Signature verification failed: incorrect signature" in done.stderr + done.stdout
    assert done.returncode != 0
