#!/bin/sh
# Installed by gitgates (shim 1): @HOOK@ runs the gates of [tool.gitgates] in pyproject.toml.
# Take it out with: gitgates uninstall-hooks
hook=@HOOK@
python=@PYTHON@
home=@HOME@
if [ "${GITGATES-}" = 0 ]; then
    [ -x "$0.before-gitgates" ] || exit 0
    exec "$0.before-gitgates" "$@"
fi
if [ -x "$python" ] && [ -r "$home/gitgates/__main__.py" ]; then
    exec "$python" -I -S -c 'import sys
sys.path.insert(0, sys.argv.pop(1))
from gitgates.__main__ import main
main()' "$home" git-hook "$0" "$hook" "$@"
fi
if command -v gitgates >/dev/null 2>&1; then
    exec gitgates git-hook "$0" "$hook" "$@"
fi
cat >&2 <<MESSAGE
gitgates $hook: nothing was checked: the gitgates that this hook was installed with is gone
  ($python, $home)
  Install gitgates again and run: gitgates install-hooks
  Or leave the gates out this once: GITGATES=0 git ...
  Or take the hook out for good: rm '$0'
MESSAGE
exit 69
