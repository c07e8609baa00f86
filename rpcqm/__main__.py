"""`python -m rpcqm` is the `rpcqm` command."""

import sys

from rpcqm.cli.interrupts import INTERRUPTED, end_at_once


def run() -> int:
    """Run the command; Ctrl-C ends it quietly even before it has been loaded."""
    try:
        end_at_once()
        from rpcqm.cli.main import main

        return main()
    except KeyboardInterrupt:
        return INTERRUPTED


if __name__ == "__main__":
    sys.exit(run())
