"""What a configuration says of connections: how many there may be, and what one may use."""

import resource

from rpcqm import config
from rpcqm.base.admission import Admission, room_for_connections
from rpcqm.base.log import get_logger
from rpcqm.rpc.limits import Limits

_log = get_logger("service")


def rpc_limits(limits: config.LimitsSection) -> Limits:
    """What callers over RPC may use."""
    return Limits(
        call_bytes=limits.call_bytes,
        call_fragments=limits.call_fragments,
        calls=limits.calls,
        waiting_calls=limits.waiting_calls,
        contexts=limits.contexts,
        security_contexts=limits.security_contexts,
        handles=limits.handles,
        cursors=limits.cursors,
        connections=limits.connections,
        connections_per_address=limits.connections_per_address,
        unsent_bytes=limits.unsent_bytes,
        held_bytes_in_all=limits.held_bytes,
        unread_milliseconds=limits.unread_seconds * 1000,
        unfinished_milliseconds=limits.unfinished_seconds * 1000,
        idle_milliseconds=limits.idle_seconds * 1000,
        unauthenticated_milliseconds=limits.unauthenticated_seconds * 1000,
        stop_milliseconds=limits.stop_seconds * 1000,
    )


def admission_of(limits: config.LimitsSection) -> Admission:
    """Who may connect, over all doors: as many as is set, or as the open files leave room for."""
    descriptors, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    room = None
    if descriptors != resource.RLIM_INFINITY:
        room = room_for_connections(descriptors)
    admission = Admission(limits.connections, limits.connections_per_address, room)
    if admission.bound < limits.connections:
        _log.warning(
            "the open files that the system allows leave room for fewer connections",
            wanted=limits.connections,
            connections=admission.bound,
            open_files=descriptors,
        )
    return admission
