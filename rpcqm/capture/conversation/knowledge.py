"""What connections tell about others: which server serves which interface."""

from collections import deque
from contextlib import suppress

from rpcqm.base.errors import DecodeError
from rpcqm.capture.conversation.call import CapturedCall
from rpcqm.capture.conversation.interfaces import Context
from rpcqm.capture.file.problems import Problems
from rpcqm.rpc.tower import Tower

_MOST_KNOWN = 64
"""Changes of what a server's context stands for that are remembered."""

Known = tuple[int, Context]
"""A context, and where in the capture it was heard of."""


class Knowledge:
    """What was heard of servers, each with its place in the capture.

    Connections are not followed in the order of the capture where segments are missing: what is
    behind a call in the capture tells nothing about it.
    """

    def __init__(self, problems: Problems) -> None:
        self.problems = problems
        self._contexts: dict[tuple[str, int], deque[Known]] = {}
        self._towers: dict[str, Known] = {}

    def bound(self, server: str, context: Context, offset: int) -> None:
        """A server accepted a context."""
        key = server, context.identifier
        known = self._contexts.setdefault(key, deque(maxlen=_MOST_KNOWN))
        if not known or known[-1][0] > offset or not _is_same(known[-1][1], context):
            known.append((offset, context))

    def guess(self, server: str, identifier: int, offset: int) -> Context:
        """The context of a call on a connection whose bind was not captured."""
        known = self._contexts.get((server, identifier), ())
        before = [each for each in known if each[0] <= offset]
        if before:
            return max(before, key=lambda each: each[0])[1]
        heard, context = self._towers.get(server, (offset + 1, None))
        return context if context and heard <= offset else Context(identifier, None, None)

    def answered(self, call: CapturedCall) -> None:
        """Learn from an answer of the endpoint mapper where interfaces are served."""
        if call.opnum not in (2, 3):
            return
        response = call.decoded_response()
        if response is None:
            return
        if call.opnum == 3:
            found = [tower for tower in response.ITowers or () if tower is not None]
        else:
            found = [entry.tower for entry in response.entries if entry.tower is not None]
        mapper, offset = call.conversation.server, call.response_offset
        for each in found:
            # One tower that cannot be read says nothing about the others.
            with suppress(DecodeError):
                self._follow(Tower.unpack(each.tower_octet_string), mapper, offset)

    def _follow(self, tower: Tower, mapper: str, offset: int) -> None:
        if tower.tcp_port is None:
            return
        server = f"{mapper.rpartition(':')[0]}:{tower.tcp_port}"
        heard, _ = self._towers.get(server, (offset + 1, None))
        if offset < heard:
            context = Context(0, tower.interface, tower.transfer_syntax.uuid)
            self._towers[server] = offset, context


def _is_same(one: Context, other: Context) -> bool:
    return (one.uuid, one.version, one.syntax) == (other.uuid, other.version, other.syntax)
