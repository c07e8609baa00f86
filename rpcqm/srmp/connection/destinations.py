"""The destination of a message that came by HTTP ([MC-MQSRM] 3.1.5.1.3)."""

from collections.abc import Callable
from typing import NamedTuple

from rpcqm.adm.message import Message
from rpcqm.adm.queue import OutgoingQueue, Queue
from rpcqm.adm.queue_manager import QueueManager
from rpcqm.base.addresses import owner_of
from rpcqm.base.errors import DecodeError
from rpcqm.codec.names.format_name import DirectName, FormatName
from rpcqm.codec.packet.enums import MessageClass
from rpcqm.codec.types.mqvalues import FormatNameType
from rpcqm.qm.arrivals import Arrivals
from rpcqm.qm.names import LocalNames
from rpcqm.qm.outgoing import Outgoing
from rpcqm.qm.outgoing_bounds import source_of
from rpcqm.qm.protection import RejectedError
from rpcqm.srmp.incoming import destination_of
from rpcqm.srmp.redirection import find_redirection
from rpcqm.srmp.settings import SrmpSettings

_KEPT, _SHORT = 256, 256
"""How many URLs of local queues are cached, and their greatest length: administrators make fewer
and shorter ones, and invented URLs take no memory."""
_DEFAULT_PORTS = {"HTTP": 80, "HTTPS": 443}


class BadRequestError(Exception):
    """A message that is answered with 400; the text says why."""


class Destination(NamedTuple):
    """The destination name, from the envelope or the inbound map, and whether it is local.

    A forwarded message has that name as its `<to>` from now on.
    """

    name: FormatName
    is_here: bool
    listener: str = ""
    """The queue's name if the message goes to a multicast address."""
    others: tuple["Destination", ...] = ()
    """The other queues with that multicast address."""


class Destinations:
    """Finds the queues of messages, here or on their way to elsewhere."""

    def __init__(
        self,
        settings: Callable[[], SrmpSettings],
        queue_manager: QueueManager,
        names: LocalNames,
        arrivals: Arrivals,
        outgoing: Outgoing,
    ) -> None:
        self._settings_now, self._queue_manager = settings, queue_manager
        self._names, self._arrivals, self._outgoing = names, arrivals, outgoing
        self._found: dict[str, Destination] = {}
        """Results of `find` under the present settings."""
        self._settings = settings()

    def find(self, to: str) -> Destination:
        """The destination for <to>; the inbound map comes first (G215). Raises BadRequestError."""
        settings = self._settings_now()
        if settings is not self._settings:
            self._found, self._settings = {}, settings
        return self._found.get(to) or self._look_for(to, settings)

    def _look_for(self, to: str, settings: SrmpSettings) -> Destination:
        redirected = find_redirection(settings.inbound, to)
        try:
            name = destination_of(to if redirected is None else redirected)
        except DecodeError as error:
            raise BadRequestError(str(error)) from error
        if name.type is FormatNameType.QUEUE_FORMAT_TYPE_MULTICAST:
            return self._listening_to(name)
        if self.is_here(name):
            return self._kept(to, Destination(name, True))
        if redirected is None and not settings.transparent_store_and_forward:
            place = (
                f"{name.direct_name.host}:{name.direct_name.port}" if _is_web(name) else str(name)
            )
            detail = "is another host or port; if it leads here, list it in `aliases`"
            raise BadRequestError(f"{place:.200} {detail}")
        if not _is_web(name):
            raise BadRequestError("no URL to forward to")
        return Destination(name, False)

    def _kept(self, to: str, destination: Destination) -> Destination:
        if len(to) <= _SHORT:
            if len(self._found) >= _KEPT:
                self._found.clear()
            self._found[to] = destination
        return destination

    def is_here(self, name: FormatName) -> bool:
        """Whether a name means this machine: its host with our port or none (G215, G500)."""
        if not isinstance(name.value, str):
            return False
        direct = name.direct_name
        names = self._names
        here = names.is_local(direct.host) and self._is_our_port(direct)
        return here or names.is_mapped(direct)

    def _is_our_port(self, name: DirectName) -> bool:
        settings = self._settings_now()
        usual = _DEFAULT_PORTS.get(name.protocol)
        return name.port in (None, usual, settings.http_port, settings.https_port)

    def queue_here(self, name: FormatName, in_stream: bool) -> Queue:
        """The local queue of a name.

        Raises BadRequestError if there is no such queue, or if it takes messages of the other kind
        only; RejectedError for one of the queue manager's own.
        """
        try:
            return self._arrivals.queue_here(name, in_stream)
        except RejectedError as error:
            if error.reason is MessageClass.MQMSG_CLASS_NACK_ACCESS_DENIED:
                raise
            raise BadRequestError(_REASONS.get(error.reason, error.reason.name)) from error

    def _listening_to(self, name: FormatName) -> Destination:
        """The queues of a multicast address, as direct names. Raises BadRequestError."""
        address = str(name).partition("=")[2]
        queues = self._queue_manager.queue_collection.values()
        names = [f"DIRECT=OS:{each.pathname}" for each in queues if _listens(each, address)]
        if not names:
            raise BadRequestError("no queue has that multicast address")
        first, *others = (Destination(FormatName.parse(each), True, each) for each in names)
        return first._replace(others=tuple(others))

    def outgoing_queue(self, name: FormatName, message: Message) -> OutgoingQueue:
        """The outgoing queue for a message; MQ_ERROR_INSUFFICIENT_RESOURCES for too many queues."""
        found = self._outgoing.find(name)
        return found or self._outgoing.create(name, origin=owner_of(source_of(message)))


_REASONS = {
    MessageClass.MQMSG_CLASS_NACK_BAD_DST_Q: "there is no such queue",
    MessageClass.MQMSG_CLASS_NACK_NOT_TRANSACTIONAL_Q: "the queue is not transactional",
    MessageClass.MQMSG_CLASS_NACK_NOT_TRANSACTIONAL_MSG: "the queue is transactional",
}


def _listens(queue: Queue, address: str) -> bool:
    return queue.multicast_address == address


def _is_web(name: FormatName) -> bool:
    return isinstance(name.value, str) and name.direct_name.protocol in _DEFAULT_PORTS
