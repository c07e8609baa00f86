"""`python -m rpcqm` is the `rpcqm` command."""

import gc
import sys

from rpcqm.cli.interrupts import INTERRUPTED, end_at_once

COLLECTION_THRESHOLDS = (100_000, 20, 100)
"""Modules that are loaded stay, and the search for cycles among them took a fifth of a command's
time (G575). `serve` has thresholds of its own."""


def run() -> int:
    """Run the command; Ctrl-C ends it quietly even before it has been loaded."""
    try:
        end_at_once()
        gc.set_threshold(*COLLECTION_THRESHOLDS)
        from rpcqm.cli.main import main

        return main()
    except KeyboardInterrupt:
        return INTERRUPTED
    finally:
        gc.freeze()  # the process ends: nobody has to look for cycles once more


if __name__ == "__main__":
    sys.exit(run())
