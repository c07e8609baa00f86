"""What pages ask to find out what they may show, which nobody has tried."""

from rpcqm.qm.access import probing

__all__ = ["probing"]
