"""`rpcqm` with a queue manager whose R_EndReceive and R_CreateCursor are deliberately wrong."""

import sys
from typing import Any

from rpcqm.base.hresult import HResult
from rpcqm.cli.main import main
from rpcqm.interfaces.remote_read import RemoteRead

_end_receive = RemoteRead.R_EndReceive


def _wrong_end(self: Any, call: Any, request: Any) -> Any:
    """Keeps every message, whatever it is told."""
    request.dwAck = 1
    return _end_receive(self, call, request)


def _no_cursor(self: Any, call: Any, request: Any) -> Any:
    return HResult.MQ_ERROR_INSUFFICIENT_RESOURCES


if __name__ == "__main__":
    wrong: Any = RemoteRead
    wrong.R_EndReceive = _wrong_end
    wrong.R_CreateCursor = _no_cursor
    sys.exit(main())
