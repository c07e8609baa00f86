"""Reports of traced messages, sent to the report queue that they name ([MS-MQQB] 3.1.5.8.9)."""

from rpcqm.adm.message import Message
from rpcqm.base.clock import Clock
from rpcqm.binary.trace import report
from rpcqm.codec.packet.message import build_user_message
from rpcqm.qm.acknowledgements import Acknowledgements
from rpcqm.qm.composing import Composer
from rpcqm.qm.directory import Directory
from rpcqm.qm.outgoing_bounds import source_of
from rpcqm.qm.sender_rights import SenderRights
from rpcqm.store.store import Store


class TraceReports:
    """Sends reports; a message without a report queue, or one without room, gets none."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        directory: Directory,
        composer: Composer,
        sender_rights: SenderRights,
        acknowledgements: Acknowledgements,
    ) -> None:
        self._store, self._clock, self._directory = store, clock, directory
        self._composer, self._sender_rights = composer, sender_rights
        self._acknowledgements = acknowledgements

    def send(self, message: Message, next_hop: str = "") -> None:
        """Report that a traced message has come, or that it goes to `next_hop`."""
        now = self._clock.now() // 1000
        made = report(message.attributes, self._composer.new_identifier(), now, next_hop)
        if made is None or made.destination_queue_format_name is None:
            return
        destination = made.destination_queue_format_name
        owner = self._directory.destination_queue_manager(destination)
        if owner is None:
            return
        made.destination_queue_manager_identifier = owner
        with self._store.transaction("trace") as change:
            packet = build_user_message(made)
            sender, origin = self._sender_rights.sender_of(message), source_of(message)
            self._acknowledgements.send_if_possible(
                change, Message(packet), destination, sender, origin=origin
            )
