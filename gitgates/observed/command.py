"""How to start a command under strace, and whether that is possible here.

strace is the command's parent, and leads its process group: it ignores the signals that end
others, and ends as the command has ended, by the same signal or with the same exit status. If
strace is killed, the traced calls of the remaining processes fail, and its group is ended, too.
"""

from __future__ import annotations

import os
import stat
import sys

from gitgates.proc.call import call, which
from gitgates.proc.shared_cpu import cpu_mask

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from gitgates.core.types import Command

# Every call that takes a path, and those that tell a process's folder, what it opens, or whom it
# asks. A name that strace does not know is an error: that strace is too old to see everything.
_CALLS = (
    *("%file", "getdents64", "?getdents", "fchdir", "fchmod", "fchown", "open_by_handle_at"),
    *("?fork", "?vfork", "clone", "clone3", "unshare", "setns", "openat2", "faccessat2"),
    *("connect", "bind", "getsockname", "sendto", "sendmsg", "sendmmsg"),
    *("io_uring_setup", "ptrace", "seccomp", "sched_getaffinity"),
)
_NOT_INSTALLED = "strace is not installed: install the package `strace`"
_INSTALLERS = ("apt-get install", "dnf install", "apk add", "pacman -S", "zypper install")
# With `signal=none`, strace would not report processes that a signal ends; these signals end none.
_HARMLESS = "SIGCHLD,SIGURG,SIGWINCH,SIGCONT"
# `verbose` names the calls whose arguments are structures that we read. PATH_MAX is 4096.
_OPTIONS = (
    f"-f --seccomp-bpf -q -y -I 3 -s 4096 -e signal=!{_HARMLESS}"
    " -e verbose=connect,bind,getsockname,sendto,sendmsg,sendmmsg,openat2,clone3"
    f" -e trace={','.join(_CALLS)}"
).split()
_CAPABILITIES = "security.capability"  # capabilities(7), "File capabilities"
_ANSWERS = (  # strace's message → why it cannot be used, and what to do
    (
        b"PTRACE",
        "ptrace(2) is not permitted: give the container SYS_PTRACE, or set yama.ptrace_scope to 1",
    ),
    (b"invalid system call", "strace is too old: install version 5.11 or a newer one"),
    (b"poke_exit", "strace is too old: install version 5.11 or a newer one"),
    (b"seccomp", "this strace has no --seccomp-bpf: install version 5.11 or a newer one"),
)


def observed(command: Command, output_abs: str) -> Command:
    """Return a command that does the same, and records what it reads in a new file."""
    argv = ("strace", *_options(), "-o", output_abs, "--", *command.argv)
    return command._replace(argv=argv)


def _options() -> list[str]:
    mask = cpu_mask()
    inject = ["-e", f"inject=sched_getaffinity:poke_exit=@arg3={mask}"] if mask else []
    return [*_OPTIONS, *inject]


def why_not(command: Command) -> str:
    """Return why a command cannot be observed, and what to do; empty if nothing is known to."""
    path = command.env.get("PATH", os.defpath)
    if not sys.platform.startswith("linux"):
        return "only Linux has strace"
    try:
        which("strace", path)
    except OSError:
        return _NOT_INSTALLED
    try:
        program = which(command.argv[0], path)
    except OSError:
        return f"`{command.argv[0]}` cannot be run"  # whoever starts it reports why
    return privileged(os.path.join(command.cwd_abs, program))


def found_program(command: Command) -> str:
    """Return the file of a program that is found in PATH; else an empty string."""
    if "/" in command.argv[0]:
        return ""
    try:
        return which(command.argv[0], command.env.get("PATH", os.defpath))
    except OSError:
        return ""


def why_not_here(env: Mapping[str, str]) -> str:
    """Return why nothing can be observed here, found by an attempt; empty if it can."""
    try:
        tried = call(("strace", *_options(), "-o", os.devnull, "--", "/bin/true"), env)
    except OSError:
        return _NOT_INSTALLED
    if not tried.exit_status:
        return ""
    says = tried.stderr.strip()
    answers = [answer for sign, answer in _ANSWERS if sign in says]
    return answers[0] if answers else f"strace does not work here: {os.fsdecode(says[-200:])}"


def install_command(env: Mapping[str, str]) -> str:
    """Return the command that installs strace on this system; empty if unknown."""
    path = env.get("PATH", os.defpath)
    for command in _INSTALLERS:
        try:
            which(command.split()[0], path)
        except OSError:
            continue
        return f"{command} strace"
    return ""


def privileged(program_abs: str) -> str:
    """Return why a program that gets privileges cannot be observed; empty if it gets none."""
    try:
        status = os.stat(program_abs)
    except OSError:
        return ""
    sets_user = status.st_mode & stat.S_ISUID and status.st_uid != os.geteuid()
    sets_group = status.st_mode & stat.S_ISGID and status.st_gid != os.getegid()
    if sets_user or sets_group or (os.geteuid() and _has_capabilities(program_abs)):
        return f"runs {program_abs}, which gets privileges that strace prevents"
    return ""


def _has_capabilities(program_abs: str) -> bool:
    try:
        return _CAPABILITIES in os.listxattr(program_abs)
    except OSError:  # the file system does not support them
        return False
