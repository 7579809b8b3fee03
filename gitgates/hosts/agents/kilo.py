"""Kilo as a host: a fork of opencode, with folders, tools and variables of its own.

Source: recorded from Kilo 7.8.1.
"""

from __future__ import annotations

from gitgates.hosts.agents.opencode import OpenCode


class Kilo(OpenCode):
    """Kilo."""

    NAME = "kilo"
    TITLE = "Kilo"
    PROGRAMS = ("kilo", "kilocode", "@kilocode/cli")
    UNASKED = ("--auto",)
    TESTED = "7.8.1"
    VARIABLES = (("KILO", "kilo", "tells that an agent runs a command, and not a person"),)
    CALLER = ("KILO",)
    SECRETS = (
        *("KILO_API_KEY", "KILO_AUTH_CONTENT", "KILO_CONFIG_CONTENT", "KILO_CONSOLE_TOKEN"),
        *("KILO_BACKGROUND_PROCESS_TOKEN", "KILO_BROWSER_BROKER_TOKEN", "KILO_SERVER_PASSWORD"),
    )
    OF_A_SESSION = (
        *("GITGATES_SESSION", "KILO", "KILO_PID", "KILO_RUN_ID", "KILO_PROCESS_ROLE"),
        *("OPENCODE", "AGENT"),
    )
    CANNOT = {"turn-end": "`kilo run` is kept at work once, and ends with the next turn"}
    TOOL_NAMES = {
        **OpenCode.TOOL_NAMES,
        "shell": ("bash", "background_process"),
        "harmless": (
            *OpenCode.TOOL_NAMES["harmless"],
            *("board_post", "board_read", "goal", "kilo_local_recall", "link_pr"),
            *("cron_create", "cron_delete", "cron_list", "schedule_wakeup", "cancel_wakeup"),
        ),
    }
    OTHER_NAMES = {**OpenCode.OTHER_NAMES, "background_process": ("Bash",)}
    OFF_VARIABLES = ("KILO_PURE", "KILO_DISABLE_PROJECT_CONFIG")
    FOLDER = ".kilo"
    HOME = ".config/kilo"


HOST = Kilo()
