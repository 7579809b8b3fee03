"""A repository on a drive of Windows, as WSL mounts them, and what is said about it."""

from __future__ import annotations

import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
from click.testing import CliRunner
from install_support import make_repo

from gitgates.cli import main
from gitgates.setup.install import hookspath
from gitgates.setup.install.hookspath import drive_remarks

# Lines of /proc/self/mountinfo, as WSL writes them.
WSL_2 = r"""
64 72 8:32 / / rw,relatime - ext4 /dev/sdc rw,discard,errors=remount-ro,data=ordered
99 64 0:54 / /mnt/c rw,noatime - 9p C:\134 rw,dirsync,aname=drvfs;path=C:\;uid=1000;gid=1000
100 64 0:55 / /mnt/c/linux rw,relatime - ext4 /dev/sdd rw
101 64 0:56 / /mnt/my\040drive rw,noatime - virtiofs drvfsDe9b3 rw
"""
WSL_1 = r"""
2 2 0:2 / / rw,noatime - wslfs rootfs rw
12 2 0:12 / /mnt/c rw,noatime - drvfs C:\134 rw,uid=1000,gid=1000,case=off
"""


@pytest.mark.parametrize(
    ("mounts", "folder", "drive"),
    [
        (WSL_2, "/mnt/c/Users/me/src", "/mnt/c"),
        (WSL_2, "/mnt/c", "/mnt/c"),
        (WSL_2, "/mnt/my drive/src", "/mnt/my drive"),
        (WSL_2, "/mnt/c/linux/src", ""),  # another file system, mounted there
        (WSL_2, "/mnt/cd/src", ""),
        (WSL_2, "/home/me/src", ""),
        (WSL_1, "/mnt/c/src", "/mnt/c"),
        (WSL_1, "/home/me/src", ""),
        ("", "/mnt/c/src", ""),  # macOS has no such file
    ],
)
def test_the_drives_of_windows(mounts: str, folder: str, drive: str, tmp_path: Path) -> None:
    (tmp_path / "mountinfo").write_text(mounts.lstrip())
    said = drive_remarks(folder, str(tmp_path / "mountinfo"))
    start = f"this repository is on a Windows drive ({drive})"
    assert [note.startswith(start) for note in said] == ([True] if drive else [])


def test_install_hooks_and_doctor_say_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    mounts = tmp_path / "mountinfo"
    mounts.write_text(WSL_2.lstrip() + f"102 64 0:57 / {tmp_path} rw - drvfs C: rw\n")
    look = partial(drive_remarks, mounts_abs=str(mounts))
    monkeypatch.setattr(hookspath, "drive_remarks", look)
    repo = make_repo(tmp_path / "repo", tmp_path / "home")
    repo.configure("pre-commit")
    monkeypatch.chdir(repo.path)

    def said(*args: str) -> str:
        return CliRunner().invoke(main, args, env=repo.env).stdout + capfd.readouterr().out

    note = f"this repository is on a Windows drive ({tmp_path}): hooks run only for git in WSL"
    for more in ((), ("--agent", "claude", "--yes"), ("--via", "lefthook")):
        assert f"gitgates: {note}" in said("install-hooks", *more), more
    assert f"note     {repo.path}: {note}" in said("doctor")


@pytest.mark.nightly
@pytest.mark.slow
def test_so_they_do_on_a_mount_of_such_a_name(tmp_path: Path) -> None:
    drive = tmp_path / "drive"
    drive.mkdir()
    script = f'mount -t tmpfs drvfsC {drive} && exec "$@"'
    within = ("unshare", "-rm", "sh", "-c", script, "sh")
    if subprocess.run([*within, "true"], capture_output=True, check=False).returncode:
        pytest.skip("mount namespaces are not permitted here")
    repo = make_repo(tmp_path / "repo", tmp_path / "home")
    repo.configure("pre-commit")
    program = f"{sys.executable} -m gitgates"
    install = f"{program} install-hooks"
    steps = f"cp -r {repo.path} {drive}/repo && cd {drive}/repo && {install} && "
    steps += f"{install} --agent claude --yes && {install} --via lefthook"
    done = subprocess.run(
        [*within, "sh", "-c", f"{steps}; {program} doctor"],
        env=repo.env,
        capture_output=True,
        text=True,
        check=False,
    )
    installed, examined = done.stdout.split("ok       git:")
    note = f"this repository is on a Windows drive ({drive}): hooks run only for git in WSL"
    assert installed.count(f"gitgates: {note}") == 3
    assert ".git/hooks/pre-commit: installed" in installed
    assert f"note     {drive}/repo: {note}" in examined
    assert "windows.md" in examined
