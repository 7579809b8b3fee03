"""Kilo as a host: a fork of opencode with its own folders, tools and variables.

Source: recorded from Kilo 7.8.1.
"""

from __future__ import annotations

from gitgates.hosts.agents.opencode import OpenCode


class Kilo(OpenCode):
    """Kilo."""

    NAME = "kilo"
    TITLE = "Kilo"
    PROGRAMS = ("kilo", "kilocode", "@kilocode/cli")
    AUTO_APPROVE_OPTIONS = ("--auto",)
    TESTED = "7.8.1"
    ENVIRONMENT = OpenCode.ENVIRONMENT._replace(
        documented=(("KILO", "kilo", "set if an agent runs the command, not a person"),),
        secrets=(
            *("KILO_API_KEY", "KILO_AUTH_CONTENT", "KILO_CONFIG_CONTENT", "KILO_CONSOLE_TOKEN"),
            *("KILO_BACKGROUND_PROCESS_TOKEN", "KILO_BROWSER_BROKER_TOKEN", "KILO_SERVER_PASSWORD"),
        ),
        of_a_session=(
            *("GITGATES_SESSION", "KILO", "KILO_PID", "KILO_RUN_ID", "KILO_PROCESS_ROLE"),
            *("OPENCODE", "AGENT"),
        ),
    )
    PROTOCOL = OpenCode.PROTOCOL._replace(
        cannot={"turn-end": "`kilo run` can be blocked once, and ends after the next turn"},
    )
    TOOLS = OpenCode.TOOLS._replace(
        names={
            **OpenCode.TOOLS.names,
            "shell": ("bash", "background_process"),
            "harmless": (
                *OpenCode.TOOLS.names["harmless"],
                *("board_post", "board_read", "goal", "kilo_local_recall", "link_pr"),
                *("cron_create", "cron_delete", "cron_list", "schedule_wakeup", "cancel_wakeup"),
            ),
        },
        other_names={**OpenCode.TOOLS.other_names, "background_process": ("Bash",)},
    )
    FILES = OpenCode.FILES._replace(
        folder=".kilo",
        home=".config/kilo",
    )
    OFF = OpenCode.OFF._replace(variables=("KILO_PURE", "KILO_DISABLE_PROJECT_CONFIG"))


HOST = Kilo()
