"""The table [triggers]: who may run the rules of triggers."""

from dataclasses import dataclass
from typing import Annotated

from rpcqm.config.about import About


@dataclass(frozen=True, slots=True)
class TriggersSection:
    """What the service `rpcqm triggers run` may do."""

    account: Annotated[
        str,
        About(
            "An account that may run triggers without being an administrator; it reads the rules, "
            "and queues as far as its rights go.",
            default="none",
        ),
    ] = ""
