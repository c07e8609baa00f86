"""Whether queue managers of tests compare what templates do: RPCQM_SHADOW=1.

Nothing of the product is loaded here, as a test's own process may come to load it otherwise.
"""

import os

SWITCH = "RPCQM_SHADOW"
"""What the tests are run with to compare in this process and in all that it starts."""
VARIABLE = "RPCQM_OBSERVER"
"""What the product reads (`rpcqm.fast.observer`)."""
ON = {VARIABLE: "tests.support.shadow.comparing:observe"}
OFF = {VARIABLE: ""}
EXIT_STATUS = 86
"""What a process ends with whose templates did something else: no test overlooks that."""


def take_switch() -> None:
    """Do what the switch says."""
    if os.environ.get(SWITCH):
        os.environ.update(ON)
