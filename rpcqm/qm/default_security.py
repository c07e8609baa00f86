"""The default descriptors of queues, and the replacement of earlier versions' defaults."""

from dataclasses import replace

from rpcqm.adm.queue import Queue
from rpcqm.adm.queue_manager import QueueManager
from rpcqm.adm.records import encode_queue
from rpcqm.base.errors import DecodeError
from rpcqm.base.identity import Identity
from rpcqm.base.log import get_logger
from rpcqm.codec.security.access_check import MQQUEUEACCESSMASK, QUEUE_MAPPING
from rpcqm.codec.security.descriptor import Ace, AceType, Acl, SecurityDescriptor
from rpcqm.codec.security.identifier import (
    ANONYMOUS,
    BUILTIN_ADMINISTRATORS,
    EVERYONE,
    Sid,
)
from rpcqm.store.records import QUEUE_ID, Family
from rpcqm.store.store import Store

MIGRATED_KEY = b"default descriptors migrated"
"""Records that this data directory has no old defaults any more, or keeps them."""

_FULL = MQQUEUEACCESSMASK.MQSEC_QUEUE_GENERIC_ALL
_USE = MQQUEUEACCESSMASK.MQSEC_RECEIVE_MESSAGE | MQQUEUEACCESSMASK.MQSEC_WRITE_MESSAGE
_FOR_OTHERS = MQQUEUEACCESSMASK.MQSEC_QUEUE_GENERIC_WRITE
_SEND = MQQUEUEACCESSMASK.MQSEC_WRITE_MESSAGE
_NOBODY_IN_PARTICULAR = frozenset({ANONYMOUS, EVERYONE})

_log = get_logger("qm")


def owner_for(identity: Identity | None) -> Sid:
    """The owner of what an identity creates.

    It is Administrators for the queue manager itself, for Anonymous, and for local users who
    have no account: the SID of these is that of Everyone (G83).
    """
    sid = BUILTIN_ADMINISTRATORS if identity is None else Sid.parse(identity.sid)
    return BUILTIN_ADMINISTRATORS if sid in _NOBODY_IN_PARTICULAR else sid


def default_access_list(owner: Sid) -> Acl:
    """Everything for the owner, peek, receive and send for Everyone, send for Anonymous (G83)."""
    return Acl((allow(owner, _FULL), allow(EVERYONE, _USE), allow(ANONYMOUS, _SEND)))


def workgroup_access_list(srmp_http_support: bool) -> Acl:
    """The list of a workgroup: everything for Everyone ([MS-MQDMPR] 3.1.7.1.3.1)."""
    aces = [allow(EVERYONE, _FULL)]
    if srmp_http_support:
        aces.append(allow(ANONYMOUS, _SEND))
    return Acl(tuple(aces))


def application_access_list(owner: Sid, world_readable: bool) -> Acl:
    """What programs give their queues by COM: to the owner and Administrators everything.

    The others see properties and permissions and send, Anonymous sends; where the queue is
    `world_readable`, everyone receives, too ([MC-MQAC] 3.10.4.1.26.1, G272).
    """
    everyone = _FOR_OTHERS | (_USE if world_readable else 0)
    aces = [allow(EVERYONE, everyone), allow(ANONYMOUS, _SEND), allow(owner, _FULL)]
    if owner != BUILTIN_ADMINISTRATORS:
        aces.append(allow(BUILTIN_ADMINISTRATORS, _FULL))
    return Acl(tuple(aces))


def allow(sid: Sid, rights: int) -> Ace:
    """An entry that grants `rights`."""
    return Ace(AceType.ACCESS_ALLOWED_ACE_TYPE, mask=int(rights), sid=sid)


def migrate(store: Store, queue_manager: QueueManager) -> None:
    """Replace the defaults of earlier versions by those of this one, once for a data directory.

    A descriptor of that kind that is set afterwards is kept (G84).
    """
    if store.get(Family.META, MIGRATED_KEY) is not None:
        return
    with store.transaction("migrate default descriptors") as change:
        for queue in queue_manager.queue_collection.values():
            security = _migrated(queue)
            if security is not None:
                queue.security = security
                change.put(Family.QUEUE, QUEUE_ID.pack(queue.queue_id), encode_queue(queue))
                _log.warning(
                    "the old default permissions are replaced", queue=queue.pathname, always=True
                )
        change.put(Family.META, MIGRATED_KEY, b"1")


def _migrated(queue: Queue) -> bytes | None:
    """The descriptor that replaces a queue's own; None if the queue keeps its own."""
    if queue.main is not queue or not queue.security:
        return None
    try:
        descriptor = SecurityDescriptor.decode(queue.security)
    except DecodeError:  # a damaged descriptor is no default of an earlier version
        return None
    if descriptor.owner != ANONYMOUS or not _is_workgroup_list(descriptor.dacl):
        return None
    owner = BUILTIN_ADMINISTRATORS
    return replace(descriptor, owner=owner, dacl=default_access_list(owner)).encode()


def _is_workgroup_list(dacl: Acl | None) -> bool:
    if dacl is None:
        return False
    aces = tuple(
        ace if ace.sid is None else replace(ace, mask=QUEUE_MAPPING.map(ace.mask))
        for ace in dacl.aces
    )
    return aces in (workgroup_access_list(False).aces, workgroup_access_list(True).aces)
