"""What went wrong outside of the program, as text for the person who runs it."""

from __future__ import annotations


class UserError(Exception):
    """`str(error)` says what happened, where, and what to do. The command line prints it and no traceback.

    `exit_code` is 1 where the work failed, 2 where the command or its settings were wrong.
    """

    exit_code = 1
