"""Which calls are wanted: by interface, opnum, status, queue, message identifier."""

import functools
from collections.abc import Collection
from dataclasses import dataclass

from rpcqm.base.errors import FaultStatus
from rpcqm.base.hresult import HResult, NtStatus
from rpcqm.base.text import folded
from rpcqm.capture.analysis import Exchange
from rpcqm.capture.conversation.call import FURTHER_STATUSES, CapturedCall
from rpcqm.capture.conversation.interfaces import interface_named
from rpcqm.capture.conversation.subjects import Subjects, message_identifiers

_BARE = str.maketrans("", "", "{}")


def without_braces(text: str) -> str:
    """A message identifier as filters have it."""
    return text.translate(_BARE)


def status_of(text: str) -> int:
    """A status by its name, in any case, or by its number; raises ValueError."""
    found = _statuses().get(text.lower())
    return int(text, 0) & 0xFFFFFFFF if found is None else found


@functools.cache
def _statuses() -> dict[str, int]:
    known = {name.lower(): status for status, name in FURTHER_STATUSES.items()}
    for names in (FaultStatus, NtStatus, HResult):
        for name, status in names.__members__.items():
            known[name.lower()] = int(status)
    return known


@dataclass(frozen=True, slots=True)
class Filter:
    """What every condition that is set lets through; empty collections let everything through.

    `opnums` are numbers or method names, `interfaces` names or UUIDs in lower case, `queues`
    parts of queue names, folded, `messages` identifiers or their ends, without braces.
    """

    interfaces: Collection[str] = ()
    opnums: Collection[str] = ()
    statuses: Collection[int] = ()
    queues: Collection[str] = ()
    messages: Collection[str] = ()

    def lets_through(self, exchange: Exchange, queue: str) -> bool:
        """Whether a call or packet fits all conditions; `queue` is what it is about."""
        return (
            (not self.interfaces or self._interface(exchange))
            and (not self.opnums or self._opnum(exchange))
            and (not self.statuses or exchange.status in self.statuses)
            and (not self.queues or any(part in folded(queue) for part in self.queues))
            and (not self.messages or self._message(exchange))
        )

    def _interface(self, exchange: Exchange) -> bool:
        if exchange.interface_name.lower() in self.interfaces:
            return True
        if not isinstance(exchange, CapturedCall):
            return False
        context = exchange.context
        if str(context.uuid) in self.interfaces:
            return True
        found = (interface_named(name) for name in self.interfaces)
        return context.interface is not None and context.interface in found

    def _opnum(self, exchange: Exchange) -> bool:
        return str(exchange.opnum) in self.opnums or exchange.name.lower() in self.opnums

    def _message(self, exchange: Exchange) -> bool:
        found = message_identifiers(exchange)
        bare = [text.translate(_BARE) for text in found]
        return any(text.endswith(part) for text in bare for part in self.messages)

    @property
    def empty(self) -> bool:
        every = (self.interfaces, self.opnums, self.statuses, self.queues, self.messages)
        return not any(every)


__all__ = ["Filter", "Subjects", "status_of"]
