"""Whether queue managers of tests have request templates: `scripts/soak templates-off`."""

import os

VARIABLE = "RPCQM_LIMITS_REQUEST_TEMPLATES"
"""What a served queue manager takes from its environment, and those in a test's own process too."""


def are_on() -> bool:
    """Unless the environment says otherwise."""
    return os.environ.get(VARIABLE, "true") != "false"
