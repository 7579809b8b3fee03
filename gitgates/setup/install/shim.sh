#!/bin/sh
# Installed by gitgates (shim 2): runs the gates of [tool.gitgates] in pyproject.toml.
# Take it out with: gitgates uninstall-hooks
hook=@HOOK@
python=@PYTHON@
home=@HOME@
# Another hook manager may have renamed this file, but not the hook that was there before it.
case $0 in
    */*) shim=${0%/*}/$hook ;;
    *) shim=./$hook ;;
esac

# Become the hook that was there before; where that one has called us back, end.
become_kept() {
    mark="off $PWD $shim"
    case ${GITGATES_ACTIVE-} in
        *"$mark"*) exit 0 ;;
    esac
    GITGATES_ACTIVE="${GITGATES_ACTIVE-}
$mark"
    export GITGATES_ACTIVE
    @BECOME@
}

if [ "${GITGATES-}" = 0 ]; then
    become_kept "$@"
fi
if [ -x "$python" ] && [ -r "$home/gitgates/__main__.py" ]; then
    exec "$python" -I -S -c 'import sys
sys.path.insert(0, sys.argv.pop(1))
from gitgates.__main__ import main
main()' "$home" git-hook "$shim" "$hook" "$@"
fi
if gitgates --version </dev/null >/dev/null 2>&1; then
    exec gitgates git-hook "$shim" "$hook" "$@"
fi
(become_kept "$@")
cat >&2 <<MESSAGE
gitgates $hook: nothing was checked: the gitgates that this hook was installed with is gone
  ($python, $home)
  Install gitgates again and run: gitgates install-hooks
  Or leave the gates out this once: GITGATES=0 git ...
  Or take the hook out for good: rm '$0'
MESSAGE
case $hook in
    *post-*) exit 0 ;; # git has done already what it is about
esac
exit 69
