#!/bin/sh
# The main job, in a throw-away repository: a commit that gates refuse, and the same one mended.
# Run it with: make demo. Needs gitgates and git in the PATH. Exit status 0: all went as expected.
set -eu

# Nothing of the person's own: no home folder, no git settings, no identity, no repository.
# shellcheck disable=SC2046
unset $(git rev-parse --local-env-vars) GITGATES GITGATES_SKIP GITGATES_ACTIVE SKIP
demo=$(mktemp -d "${TMPDIR:-/tmp}/gitgates-demo.XXXXXX")
trap 'rm -rf "$demo"' EXIT
trap 'exit 130' INT TERM
export HOME="$demo" GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1 GIT_PAGER=cat
export GIT_AUTHOR_NAME=Demo GIT_AUTHOR_EMAIL=demo@example.org
export GIT_COMMITTER_NAME=Demo GIT_COMMITTER_EMAIL=demo@example.org

bold='' dim='' plain=''
if [ -t 1 ] && [ -z "${NO_COLOR-}" ]; then
    bold=$(printf '\033[1m') dim=$(printf '\033[2m') plain=$(printf '\033[0m')
    export FORCE_COLOR=1
fi

say() { printf '\n%s# %s%s\n' "$dim" "$*" "$plain"; }

# run STATUS COMMAND: show a command and what it prints; end the demo where it ends otherwise.
run() {
    expected=$1
    printf '%s$ %s%s\n' "$bold" "$2" "$plain"
    status=0
    eval "$2" >"$demo/said" 2>&1 || status=$?
    cat "$demo/said"
    [ "$status" -eq "$expected" ] || fail "exit status $status, expected $expected"
}

said() { grep -q "$1" "$demo/said" || fail "expected to read: $1"; }

fail() {
    echo "demo: $*" >&2
    exit 1
}

mkdir "$demo/shop"
cd "$demo/shop"
git init -q -b main .

say 'two gates, and when they run'
cat >pyproject.toml <<'TOML'
[tool.gitgates.gates.leftovers]
command = '! grep -n DEBUG "$@"'
files = ["*.py"]
pass_files = true

[tool.gitgates.gates.tests]
command = "python3 -B test_price.py"
timeout = "30s"

[tool.gitgates.hooks.pre-commit]
gates = ["leftovers", "tests"]
strategy = "collect"
TOML
run 0 'cat pyproject.toml'
run 0 'gitgates check'
run 0 'gitgates install-hooks'

say 'a commit with two mistakes in it'
cat >price.py <<'PY'
def total(prices):
    print("DEBUG", prices)
    return sum(prices[1:])
PY
cat >test_price.py <<'PY'
from price import total

assert total([1, 2, 3]) == 6, "one and two and three make six"
PY
run 0 'cat price.py'
run 0 'git add .'
run 1 'git commit -q -m "Add prices"'
said 'leftovers *.*failed'
said 'tests *.*failed'
said 'blocked'
git rev-parse -q --verify HEAD >"$demo/said" && fail 'a commit was made in spite of the gates'

say 'the same, mended'
cat >price.py <<'PY'
def total(prices):
    return sum(prices)
PY
run 0 'cat price.py'
run 0 'git add .'
run 0 'git commit -q -m "Add prices"'
said '2 gates passed'
run 0 'git log --oneline --stat'
said 'price.py'

say 'and out again'
run 0 'gitgates uninstall-hooks'
if [ -e .git/hooks/pre-commit ]; then fail 'the hook is still there'; fi

say 'all as expected; the throw-away repository is removed'
