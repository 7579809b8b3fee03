"""Commands that destroy something, run in a namespace where only the repository is writable.

Whatever a command is let through with, comes back.
"""

from __future__ import annotations

import os
import subprocess
from typing import Any

import pytest
from agent_support import Agent
from test_lost_work import agent, state

__all__ = ["agent"]
pytestmark = pytest.mark.nightly
COMMANDS = r"""
rm -r data
rm -f .env a
rm -- -x; rm -rf ./data/*
rm -rf $(git ls-files -o -i --exclude-standard)
find data -type f -exec sh -c 'rm "$1"' _ {} \;
find . -name '*.csv' -delete
find data -depth -type f -print0 | xargs -0 rm
unlink .env
shred -u data/users.csv
truncate -s 0 data/users.csv
: > .env
> data/users.csv
cat /dev/null > .env
dd if=/dev/zero of=data/users.csv bs=1 count=3
cp /dev/null .env
cp -f a .env
install -m 644 a data/users.csv
mv a .env
mv -f data/users.csv data/deep/b.csv
mv data gen/
mv gen data/ && rm -rf data
ln -sf a .env
ln -sfn src data2; rm -rf data; ln -s src data
tar cf /dev/null . --remove-files
tar cf x.tar data --remove-files && rm x.tar
zip -qm x.zip data/users.csv; rm -f x.zip
gzip data/users.csv && rm data/users.csv.gz
rsync -a --delete src/ data/
rsync -a --remove-source-files data/ gen/
perl -pi -e 's/a/b/' data/users.csv .env
perl -e 'unlink glob("data/*.csv")'
python3 -c "open('.env','w').close()"
python3 -c "import os; os.replace('a','.env')"
awk 'BEGIN{print "x" > "data/users.csv"}'
sed -i.bak 's/K/Z/' .env; rm .env.bak
sort -o .env a
tee data/users.csv .env < a
ed -s .env <<< $'1d\nw\nq'
ex -sc '1d|x' .env
split -b1 a data/users.csv
patch -p1 < /dev/null; echo > .env
touch -d '2000-01-01' a; rm a
chmod 000 .env
chmod 777 .env data/users.csv
chmod -R go-rwx .
chmod g-s gen; chmod 755 data/deep
setfacl -b .env; rm .env
mkdir -p new/sub && mv .env new/sub/
mv src lib
git mv src lib
git rm -q a
git rm -rfq src
git rm --cached -q a
git rm -q --cached -r . && rm -rf data
git checkout -- .
git checkout .
git checkout HEAD~1 -- a
git checkout -q HEAD~2
git checkout -qB main HEAD~1
git checkout -q --orphan fresh && git rm -rfq .
git switch -q -f feat
git switch -q --discard-changes feat
git switch -qC feat
git restore .
git restore --staged --worktree .
git restore -s HEAD~1 -SW .
git reset -q --hard
git reset -q --hard HEAD~1
git reset -q HEAD~1
git reset --soft HEAD~2
git reset -q --merge HEAD~1
git reset -q --keep HEAD~1
git clean -fdq
git clean -fdXq
git clean -fdxq -e data
git -C data clean -fxq .
git stash -q
git stash -uq
git stash -aq && git stash drop -q
git stash -q && git stash clear
git stash push -q a && git stash drop -q
git branch -D feat
git branch -f feat main
git branch -M feat main2
git update-ref -d refs/heads/feat
git update-ref refs/heads/feat main
git symbolic-ref HEAD refs/heads/feat
git symbolic-ref HEAD refs/heads/none
git commit -qam all
git commit -qa --amend --no-edit
git add -A && git commit -qm everything
git add -f .env data && git commit -qm secrets && git rm -rqf data
git merge -q feat -m m
git merge -q -X theirs feat
git rebase -q feat
git rebase -q --onto HEAD~2 HEAD~1
git cherry-pick feat
git revert --no-edit HEAD
git filter-branch -f --tree-filter 'rm -f a' HEAD
git fast-import --force < /dev/null; rm .env
git gc -q --prune=now
git reflog expire --expire=now --all
git branch -D feat; git gc -q --prune=now
git read-tree --empty
git read-tree -u --reset feat
git read-tree -um HEAD feat
git checkout-index -fa
git apply -R <(git diff)
git diff | git apply -R
git worktree add -q ../wt feat; rm -rf ../wt; rm -rf data
git submodule deinit -f --all; rm .env
git config core.bare true; rm .env
git update-index --assume-unchanged a; rm a
git update-index --skip-worktree a; echo > a
git sparse-checkout set src
git sparse-checkout init --cone
git tag t feat; git branch -D feat; git tag -d t
git stash -q; git checkout -q feat; git stash drop -q
git notes add -m x; git update-ref -d refs/notes/commits; rm .env
rm .git/index
rm -rf .git/refs/heads/feat
rm -f .git/HEAD
echo junk > .git/HEAD
echo > .git/index
mv .git .git2
rm -rf .git/objects
cp a .git/refs/heads/feat
rm -rf .
rm -rf ./*
rm -rf .* *
rm -rf "$PWD"
rm -rf "$(pwd)"/*
cd .. && rm -rf repo/data
cd src && rm -rf ../data ../.env
(cd data; rm *.csv)
bash -c 'rm -rf data'
sh -c "rm .env"
eval "rm .env"
env X=1 rm .env
nice rm .env
timeout 5 rm -rf data
xargs rm < <(ls -A data | sed s,^,data/,)
ls data/*.csv | xargs -I{} mv {} {}.old
for f in data/*.csv; do echo x > "$f"; done
while read f; do rm "$f"; done < <(find data -type f)
printf 'x' | tee data/*.csv
make -f <(printf 'all:\n\trm -rf data .env\n')
node -e "require('fs').rmSync('data',{recursive:true})"
command rm .env
\rm .env
/bin/rm -rf data
rm -rf d?ta
rm -rf {data,gen}
X=data; rm -rf "$X"
rm -rf ${Y:-data}
trap 'rm .env' EXIT; true
(sleep 0; rm .env) &
nohup rm .env
setsid rm .env; sleep 0.2
coproc rm .env; wait
exec rm .env
rename 's/csv/txt/' data/*.csv || mv data/users.csv data/users.txt
mv data/users.csv{,.bak}; rm data/users.csv.bak
cat a > data/users.csv 2>/dev/null
echo x >> .env
echo x | dd of=.env
head -c 1 .env > t && mv t .env
sponge .env < a || cp a .env
jq . <<< '{}' > .env
base64 a > .env
curl -s file://$PWD/a -o .env
wget -q -O .env file:///dev/null; : > .env
git archive -o .env HEAD
git show HEAD:a > .env
git cat-file blob HEAD:a > data/users.csv
git bundle create .env HEAD
git format-patch -q -1 -o data --stdout > .env
vim -es -c '%d' -c wq .env
sqlite3 data/users.csv 'create table t(x)' || echo > data/users.csv
python3 -m zipfile -c .env a
python3 -m shutil 2>/dev/null; rm -rf gen
flock .env rm .env
mkfifo p; rm p .env
rm .env; mkdir .env
rm -rf data; touch data
rm a; ln -s b a
mv a A; mv A a; echo z > a
rm src/a.py; mkdir src/a.py
mkdir -p data/users.csv.d && mv data/users.csv data/users.csv.d
chmod 000 data && true
chmod 400 gen
printf '' > gen/p.png
rm -rf gen/log data/deep
rmdir --ignore-fail-on-non-empty data/deep; rm -r data/deep
git stash -q -- src
git add . && git stash -q && git stash pop -q --index
git checkout -q feat 2>/dev/null || git checkout -qf feat
git pull -q . feat
git fetch -q . feat:main2 && git branch -D main2
git push -q . :feat
git push -q . +main:feat
git bisect start -q HEAD HEAD~2
git rebase -q -x 'rm -f .env' HEAD~1 --autostash
git am --abort; git rm -q --cached src/a.py
git commit -q --allow-empty -m e && git reset -q --hard HEAD~3
git replace HEAD HEAD~1; git checkout -q -f HEAD
echo 'data/' > .gitignore; git clean -fdq
sed -i '/data/d' .gitignore && git clean -fdq
echo '*' > .git/info/exclude; git clean -fdXq
git -c core.excludesFile=/dev/null clean -fdxq data
git --work-tree=data checkout -f HEAD -- .
GIT_WORK_TREE=gen git checkout -f
git --git-dir=.git --work-tree=. clean -fdxq
"""
_WRITABLE = """
mount --bind "$1" "$1" && mount -o remount,ro,bind / && cd "$2" && exec timeout 20 bash -c "$0"
"""


@pytest.fixture(scope="module", autouse=True)
def _namespaces() -> None:
    if subprocess.run(["unshare", "-rm", "true"], capture_output=True, check=False).returncode:
        pytest.skip("namespaces are not permitted")


@pytest.mark.parametrize("command", COMMANDS.strip().split("\n"))
def test_it_comes_back_or_is_asked_about(agent: Agent, command: str) -> None:
    before = state(agent.repo)
    fields: Any = {"tool_input": {"command": command}, "tool_use_id": "t1"}
    answer = agent.pre("Bash", "", **fields).get("hookSpecificOutput", {})
    if answer.get("permissionDecision") not in ("ask", "deny"):
        _run(agent, command)
        agent.post("Bash", "", **fields)
        agent.repo.gitgates("undo", "1", "--index", "--branch")  # some have changed nothing
    after = state(agent.repo)
    # New files that git ignores may have been there before, and new branches hide nothing.
    refs, refs_after = (set(str(now.pop("refs")).splitlines()) for now in (before, after))
    assert refs <= refs_after
    assert {path: after.get(path) for path in before} == before


def _run(agent: Agent, command: str) -> None:
    root = agent.repo.path
    subprocess.run(
        ["unshare", "-rm", "sh", "-c", _WRITABLE, command, root.parent, root],
        cwd=root,
        env={**os.environ, "GIT_MERGE_AUTOEDIT": "no", "FILTER_BRANCH_SQUELCH_WARNING": "1"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )
