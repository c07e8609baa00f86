"""Whether queue managers of tests have request templates: `scripts/soak templates-off`."""

import os

try:
    import rpcqm.fast  # noqa: F401

    WAYS: tuple[bool, ...] = True, False
    """Whether what is like others before is handled together, for tests of both ways."""
except ModuleNotFoundError:  # tests.support.project.without_fast
    WAYS = (False,)

VARIABLE = "RPCQM_LIMITS_REQUEST_TEMPLATES"
"""What a served queue manager takes from its environment, and those in a test's own process too."""


def are_on() -> bool:
    """Unless the environment says otherwise."""
    return os.environ.get(VARIABLE, "true") != "false"
