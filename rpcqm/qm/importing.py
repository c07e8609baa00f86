"""Imports messages that were exported from a queue, here or elsewhere."""

from functools import partial

from rpcqm.adm.message import NEVER, Message
from rpcqm.adm.queue import Queue
from rpcqm.base.completion import Completion
from rpcqm.base.errors import DecodeError, HResult, MQError
from rpcqm.base.identity import ANONYMOUS_LOGON
from rpcqm.codec.packet.patch import set_time_to_reach_queue, without_session_header
from rpcqm.codec.packet.user_message import UserMessage
from rpcqm.qm.positions import Positions
from rpcqm.qm.quotas import Quotas
from rpcqm.qm.standing_orders import Admission
from rpcqm.store.store import Store


def import_message(
    store: Store,
    admission: Admission,
    quotas: Quotas,
    positions: Positions,
    queue: Queue,
    packet: bytes,
) -> Completion[int]:
    """Put a whole packet unchanged into a queue; its lookup identifier when it is durable.

    It has arrived once already, so nobody is sent an acknowledgement of that, no copy goes to the
    journal, and its time to reach a queue is over. Its time to be received goes on from when it was
    sent. Later consequences are written by the right of Anonymous (G525).

    Raises MQError: MQ_ERROR_INVALID_PARAMETER for other octets, MQ_ERROR_TRANSACTION_USAGE for one
    of the other kind than the queue, MaintenanceError, and the refusals of an enqueue for lack of
    room.
    """
    message = _message(packet)
    transactional = message.attributes.transaction_identifier is not None
    if transactional is not queue.transactional:
        raise MQError(HResult.MQ_ERROR_TRANSACTION_USAGE)
    admission.check()
    quotas.admit(queue, message.stored_size)
    outcome: Completion[int] = Completion()
    with store.transaction("import") as change:
        key = positions.arrive(change, queue, message, message.envelope, imported=True)
        change.call_after(partial(outcome.succeed, key))
    return outcome


def _message(packet: bytes) -> Message:
    """The message of a packet; its sender is Anonymous, whatever the file says (G525)."""
    try:
        UserMessage(packet).validate()
    except DecodeError as error:
        raise MQError(HResult.MQ_ERROR_INVALID_PARAMETER, str(error)) from error
    arrived = bytearray(without_session_header(packet))
    set_time_to_reach_queue(arrived, NEVER)
    message = Message(bytes(arrived))
    attributes = message.attributes
    if attributes.acknowledgements_requested or attributes.tracing_queue_identifier is not None:
        message.sender = ANONYMOUS_LOGON
    return message
