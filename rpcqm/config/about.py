"""What is said of a setting: its meaning, and the values that it may have."""

from collections.abc import Callable
from dataclasses import dataclass

PORTS = (-1, 65535)


@dataclass(frozen=True, slots=True)
class About:
    """The description of a setting, and the values that it may have."""

    text: str
    between: tuple[int, int] | None = None
    choices: tuple[str, ...] = ()
    default: str = ""
    """Words for the default, if its value does not say it."""
    form: str = ""
    """A regular expression that a text has to match."""
    opens: str = ""
    """What becomes possible when a setting that lowers safety is not left at its default."""
    opens_at: str = ""
    """The value that opens something, if other values than the default do not."""
    registry: str = ""
    """The registry value of MSMQ with the same meaning, for such a setting."""
    unit: str = ""
    """The unit of a bare number; a text such as `5s` or `5MB` has its own."""
    check: Callable[[str], None] | None = None
    """Raises ValueError for a text that it cannot be, with a reason that goes on after its name."""
    beyond: str = ""
    """What happens when callers want more, for a setting that bounds them."""
