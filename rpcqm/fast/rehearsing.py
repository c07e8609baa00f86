"""Composes messages that are examined, and never sent."""

from rpcqm.adm.descriptor import OpenQueueDescriptor
from rpcqm.adm.message import Message
from rpcqm.base.identity import Identity
from rpcqm.codec.packet.message import MessageAttributes
from rpcqm.qm.composing import Composer
from rpcqm.store.store import Store


class RehearsingComposer:
    """Composes as `Composer` does, without taking a number."""

    def __init__(self, composer: Composer, store: Store) -> None:
        self._careful, self._store = composer, store

    def rehearsed(
        self,
        descriptor: OpenQueueDescriptor,
        attributes: MessageAttributes,
        identity: Identity | None,
    ) -> Message:
        """The message that `compose` would make; the next one gets its number."""
        self._store.carry_out_first()
        ordinals = self._store.counters.message_ordinal
        number = ordinals.next
        try:
            return self._careful.compose(descriptor, attributes, identity)
        finally:
            ordinals.next = number
