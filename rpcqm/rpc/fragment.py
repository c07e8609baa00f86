"""Cutting stub data into the PDUs of one request or response."""

from collections.abc import Callable, Iterator

from rpcqm.rpc.constants import PfcFlags
from rpcqm.rpc.pdu import HEADER_LENGTH
from rpcqm.rpc.security.context import SecurityContext

_FIRST = int(PfcFlags.PFC_FIRST_FRAG)
_LAST = int(PfcFlags.PFC_LAST_FRAG)


def fragments(
    security: SecurityContext,
    ptype: int,
    call_id: int,
    stub: bytes,
    fixed: Callable[[int], bytes],
    fragment: int,
    minor: int = 0,
    flags: int = 0,
) -> Iterator[bytes]:
    """The PDUs that carry `stub`, each protected by itself.

    `fixed` makes what follows the common header, given the stub data left (the alloc_hint of
    [MS-RPCE] 2.2.2.6). `flags` are set on every fragment.
    """
    length, offset, position = len(stub), 0, _FIRST
    while position & _LAST == 0:
        head = fixed(length - offset)
        space = security.body_space(fragment, HEADER_LENGTH + len(head))
        if offset + space >= length:
            position |= _LAST
        piece = stub[offset : offset + space]
        yield security.protect(ptype, flags | position, call_id, head, piece, minor)
        offset += space
        position &= ~_FIRST
