"""Assembles a queue manager and runs it."""

from rpcqm.service.run import serve
from rpcqm.service.start_error import StartError

__all__ = ["StartError", "serve"]
