"""The table `[tool.gitgates.proof]`."""

from __future__ import annotations

from gitgates.config import values as v
from gitgates.config.keys import Key, Table
from gitgates.features.proof.trust_value import SIGNERS_FILE, TRUST

_KEYS = (
    Key("trust", TRUST, "[]", weaker="any").meaning(
        "Whose proofs count, besides this machine's: identities of allowed signers, such as "
        '`["ci@example.com"]`, in which `*` matches any text; or a table with `signers`, '
        "`agents = false` and `max_age`. It counts as it is at the merge base with the "
        "default branch."
    ),
    Key("allowed_signers", SIGNERS_FILE, '""', weaker="any").meaning(
        "A file in the repository with these identities' keys, as it is at that merge base. "
        "Default: git's `gpg.ssh.allowedSignersFile`."
    ),
    Key("push", v.FLAG, "false").meaning(
        "The pre-push hook signs the proofs of the pushed commits, and pushes "
        "`refs/notes/gitgates` to the same remote."
    ),
)

TABLE = Table(
    name="proof",
    keys=_KEYS,
    meaning="Signed proofs: whose passes count here. [More](../how-to/proofs.md).",
    example='trust = ["ci@example.com"].',
)
