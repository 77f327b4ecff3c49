"""The commands of `turnstile`, one a module: `add_to(commands)` declares it, `run(arguments)` does it."""

from __future__ import annotations
