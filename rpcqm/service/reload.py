"""Which settings a running queue manager takes over, and which wait for its next start."""

from functools import reduce
from typing import Any

from rpcqm.config import Configuration
from rpcqm.config.schema import settings

FIXED = frozenset({"limits.handles", "security.keytab", "security.ntlm", "security.principal"})
"""Settings of the tables that hold as long as the process."""

TABLES = ("security", "limits", "logging", "remote")
"""Tables of settings that can be taken over."""

SINGLE = frozenset({"storage.quota"})


def changed_settings(old: Configuration, new: Configuration) -> tuple[list[str], list[str]]:
    """Keys of what differs: what is taken over, and what waits for the next start."""
    differing = [s for s in settings() if _value(old, s.path) != _value(new, s.path)]
    taken = [s.key for s in differing if _is_taken_over(s.key)]
    return taken, [s.key for s in differing if s.key not in taken]


def _is_taken_over(key: str) -> bool:
    return key in SINGLE or (key.split(".")[0] in TABLES and key not in FIXED)


def _value(configuration: Configuration, path: tuple[str, ...]) -> Any:
    return reduce(getattr, path, configuration)
