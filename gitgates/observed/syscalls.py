"""What each system call, by its name in strace, tells about what a process depends on."""

from __future__ import annotations

# How a path was read, as bits.
THERE, ABSENT, CONTENT, LISTED, PROGRAM = 1, 2, 4, 8, 16

# What a call does with each of its paths, or with the file of its first argument: look, list, run,
# make, remove, change, share (a second name), or nothing.
_ROLES = {
    "access faccessat faccessat2 stat stat64 lstat lstat64 oldstat oldlstat newfstatat": "look",
    "fstatat64 statx readlink readlinkat statfs statfs64 getxattr lgetxattr listxattr": "look",
    "llistxattr getxattrat listxattrat file_getattr name_to_handle_at chdir fchdir": "look",
    "inotify_add_watch": "look",
    "getdents getdents64": "list",
    "execve execveat": "run",
    "chmod fchmod fchmodat fchmodat2 chown chown32 fchown fchown32 fchownat lchown": "change",
    "lchown32 utime utimes futimesat utimensat utimensat_time64 setxattr lsetxattr": "change",
    "removexattr lremovexattr setxattrat removexattrat file_setattr": "change",
    "truncate truncate64": "change",
    "mkdir mkdirat mknod mknodat": "make",
    "symlink symlinkat": "none make",
    "link linkat": "share make",
    "unlink unlinkat": "remove",
    "rmdir": "empty",
}
ROLES_OF = {name: roles.split() for names, roles in _ROLES.items() for name in names.split()}
# Calls that only look at a path, and do not change the process.
LOOKS = {name for name, roles in ROLES_OF.items() if roles == ["look"]} - {"chdir", "fchdir"}
ON_FD = {"getdents", "getdents64", "fchdir", "fchmod", "fchown", "fchown32"}
HOW = {
    **dict.fromkeys(("look", "change", "remove"), THERE),
    **dict.fromkeys(("list", "empty"), THERE | LISTED),
    "make": ABSENT,
    "share": THERE | CONTENT,
    "run": THERE | CONTENT | PROGRAM,
}
# Roles that change a path → whether the path is new, replaced or gone.
CHANGES = {"change": False, "share": False, "make": True, "remove": True, "empty": True}
_NAMESPACES = dict.fromkeys(
    ("CLONE_NEWNS", "CLONE_NEWPID", "CLONE_NEWUSER"), "creates its own namespaces"
)
# Call → a part of its arguments → why a pass cannot be reused if the call succeeds.
UNREUSABLE = {
    "chroot": {"": "changes its root folder"},
    "pivot_root": {"": "changes its root folder"},
    **dict.fromkeys(("clone", "clone3", "unshare"), _NAMESPACES),
    "setns": {"": "enters other namespaces"},
    "io_uring_setup": {"": "uses io_uring, which strace does not see"},
    "open_by_handle_at": {"": "opens files without their names"},
}
# The same → why the result may differ from that without strace.
_UNTRACED = {"CLONE_UNTRACED": "starts a process that must not be traced, as sanitizers do"}
SPOILS = {
    **dict.fromkeys(("clone", "clone3"), _UNTRACED),
    "ptrace": {"": "uses ptrace itself, as debuggers and sanitizers do"},
    "seccomp": {"NEW_LISTENER": "has its calls answered by another process (seccomp)"},
}
_HARMLESS = {"getcwd", "memfd_create", "sched_getaffinity"}
JUDGED = UNREUSABLE.keys() | SPOILS.keys() | _HARMLESS
