"""The ways in which started programs end."""

import signal


def ending_of(status: int) -> str:
    """An exit status in words; a negative one is that of a signal."""
    if status > 0:
        return f"ended with exit status {status}"
    try:
        return f"was ended by {signal.Signals(-status).name}"
    except ValueError:
        return f"was ended by signal {-status}"
