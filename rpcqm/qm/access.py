"""Access checks against the descriptors of queues and of the queue manager.

The queue manager itself (identity None) may do everything.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from typing import NamedTuple, NoReturn

from rpcqm.adm.enums import QueueType
from rpcqm.adm.queue import OutgoingQueue, Queue
from rpcqm.adm.queue_manager import QueueManager
from rpcqm.base.completion import Completion
from rpcqm.base.errors import DecodeError, HResult, MQError
from rpcqm.base.identity import ANONYMOUS as ANONYMOUS_CALLER
from rpcqm.base.identity import Identity, TokenRight
from rpcqm.base.log import get_logger
from rpcqm.codec.security.access_check import (
    MQQMACCESSMASK,
    MQQUEUEACCESSMASK,
    QUEUE_MANAGER_MAPPING,
    QUEUE_MAPPING,
    GenericMapping,
    PreparedDescriptor,
    Privilege,
    privileges_of,
)
from rpcqm.codec.security.descriptor import (
    Acl,
    SecurityDescriptor,
    SecurityInformation,
)
from rpcqm.codec.security.identifier import (
    ANONYMOUS,
    AUTHENTICATED_USERS,
    BUILTIN_ADMINISTRATORS,
    EVERYONE,
)
from rpcqm.codec.security.permissions import MACHINE, QUEUE, Vocabulary
from rpcqm.codec.types.mqvalues import QueueAccessType
from rpcqm.qm.access_explained import Explanation, denied_to, explained, refusal
from rpcqm.qm.default_security import (
    allow,
    application_access_list,
    default_access_list,
    owner_for,
    workgroup_access_list,
)
from rpcqm.qm.looking import only_looks
from rpcqm.qm.machine import is_deadletter, is_internal, save_queue_manager
from rpcqm.qm.settings import QueueManagerSettings
from rpcqm.qm.token_scopes import permits, permits_sending
from rpcqm.store.store import Store

_log = get_logger("qm")

_CACHE_AT_MOST = 4096
"""Prepared descriptors that are cached; a queue manager mostly has fewer different ones."""
PREPARED_OCTETS = 1 << 22
"""Octets of security descriptors that are kept in the form in which they are evaluated.

They take ten times as much in memory.

Bound `program.known_descriptors` [octets]: all of them are forgotten, and read again.
"""

LET_IN_AT_MOST = 1024
"""Who has been found to be let in by the descriptor of a queue as it is.

Each takes about a kilobyte.

Bound `program.known_openings` [callers]: all of them are forgotten, and found again.
"""

_OPEN_RIGHTS = {
    QueueAccessType.RECEIVE_ACCESS: MQQUEUEACCESSMASK.MQSEC_RECEIVE_MESSAGE,
    QueueAccessType.RECEIVE_ADMIN_ACCESS: MQQUEUEACCESSMASK.MQSEC_RECEIVE_MESSAGE,
    QueueAccessType.PEEK_ACCESS: MQQUEUEACCESSMASK.MQSEC_PEEK_MESSAGE,
    QueueAccessType.PEEK_ADMIN_ACCESS: MQQUEUEACCESSMASK.MQSEC_PEEK_MESSAGE,
    QueueAccessType.SEND_ACCESS: MQQUEUEACCESSMASK.MQSEC_WRITE_MESSAGE,
    QueueAccessType.MOVE_ACCESS: MQQUEUEACCESSMASK.MQSEC_RECEIVE_MESSAGE,
}
_READING = MQQUEUEACCESSMASK.MQSEC_RECEIVE_MESSAGE | MQQUEUEACCESSMASK.MQSEC_RECEIVE_JOURNAL_MESSAGE
_ALL = frozenset({str(EVERYONE), str(AUTHENTICATED_USERS)})
_RULING = (
    MQQUEUEACCESSMASK.MQSEC_CHANGE_QUEUE_PERMISSIONS
    | MQQUEUEACCESSMASK.MQSEC_TAKE_QUEUE_OWNERSHIP
    | MQQUEUEACCESSMASK.MQSEC_DELETE_QUEUE
)
RECEIVING = frozenset({QueueAccessType.RECEIVE_ACCESS, QueueAccessType.RECEIVE_ADMIN_ACCESS})
_PEEKING = frozenset({QueueAccessType.PEEK_ACCESS, QueueAccessType.PEEK_ADMIN_ACCESS})
READING = RECEIVING | _PEEKING


class _LetIn(NamedTuple):
    """A caller who may open a queue of that descriptor and name.

    Every change makes another object: of the descriptor, the groups of an account, the rights that
    a token leaves.
    """

    identity: Identity
    security: bytes
    pathname: str

    def holds(self, identity: Identity, main: Queue) -> bool:
        """Whether nothing has changed since."""
        return (
            self.identity is identity
            and self.security is main.security
            and self.pathname is main.pathname
        )


class AccessControl:
    """Checks of identities, and the default descriptors."""

    def __init__(
        self, store: Store, queue_manager: QueueManager, settings: QueueManagerSettings
    ) -> None:
        self._store = store
        self._queue_manager = queue_manager
        self._settings = settings
        self._prepared: dict[tuple[bytes, int], PreparedDescriptor] = {}
        self._prepared_octets = 0
        self._let_in: dict[tuple[int, int, QueueAccessType], _LetIn] = {}

    # Checks

    def check_queue(self, queue: Queue, identity: Identity | None, rights: int) -> None:
        """Raise MQError(MQ_ERROR_ACCESS_DENIED) unless the queue's descriptor grants `rights`.

        The log has a line for every refusal, and for what the system access control list of the
        descriptor wants audited.
        """
        security = queue.main.security
        self._check(security, QUEUE_MAPPING, identity, rights, queue.pathname, queue)

    def check_queue_manager(
        self, identity: Identity | None, rights: int, queue: Queue | None = None
    ) -> None:
        """Raise MQError(MQ_ERROR_ACCESS_DENIED) unless the machine's descriptor grants `rights`.

        `queue` is the system queue that the question is about.
        """
        security = self._queue_manager.security
        self._check(security, QUEUE_MANAGER_MAPPING, identity, rights, "the queue manager", queue)

    def _grants(
        self,
        security: bytes,
        mapping: GenericMapping,
        identity: Identity,
        rights: int,
        queue: Queue | None,
    ) -> bool:
        """Whether a descriptor grants `rights`, and so does the scope of the caller's token.

        Every question about a caller's rights is answered here, so that no operation can forget the
        scope (G350), or that an account has ended (G403).
        """
        scope = identity.scope
        if identity.validity.ended:
            return False
        if identity.read_only and not only_looks(mapping, rights):
            return False
        if scope is not None and not permits(scope, mapping, rights, queue):
            return False
        return self._prepare(security, mapping).allows(identity.sids, int(rights))

    def allows(self, queue: Queue, identity: Identity, rights: int) -> bool:
        """Whether the queue's descriptor grants all of `rights`."""
        return self._grants(queue.main.security, QUEUE_MAPPING, identity, rights, queue)

    def allows_without_audit(self, queue: Queue, identity: Identity, rights: int) -> bool:
        """Whether `check_queue` would grant `rights` without a line in the log."""
        security = queue.main.security
        return not self._prepare(security, QUEUE_MAPPING).audited and self._grants(
            security, QUEUE_MAPPING, identity, rights, queue
        )

    def explain(self, queue: Queue | None, identity: Identity) -> Explanation:
        """The reasons for `allows`' answers to each right; None is the queue manager itself."""
        words = MACHINE if queue is None else QUEUE
        security = self._queue_manager.security if queue is None else queue.main.security
        return explained(self._prepare(security, words.mapping), words, identity, queue)

    def has_scope(self, identity: Identity, key: str) -> bool:
        """Whether a caller's token allows sending to a remote queue, by the key of a scope."""
        scope = identity.scope
        within = scope is None or permits_sending(scope, key)
        return within and not identity.validity.ended and not identity.read_only

    def check_scope(self, identity: Identity, key: str, what: str) -> None:
        """Raise MQError(MQ_ERROR_ACCESS_DENIED) unless `has_scope`."""
        if not self.has_scope(identity, key):
            _refuse(identity, what, MQQUEUEACCESSMASK.MQSEC_WRITE_MESSAGE)

    def may_peek(self, queue: Queue, identity: Identity) -> bool:
        """Whether the relevant descriptor of a queue lets an identity peek at it (G9).

        The machine's descriptor counts for its own journal and its dead-letter queues.
        """
        if isinstance(queue, OutgoingQueue):
            return False
        return self.may_open(queue, identity, QueueAccessType.PEEK_ACCESS)

    def is_exposed(self, queue: Queue) -> bool:
        """Whether Anonymous owns a queue of an application, or may read it or its journal."""
        if isinstance(queue, OutgoingQueue) or queue.queue_type is QueueType.SYSTEM:
            return False
        prepared = self._prepare(queue.security, QUEUE_MAPPING)
        if prepared.descriptor.owner == ANONYMOUS:
            return True
        return bool(prepared.granted(ANONYMOUS_CALLER.sids) & _READING)

    def is_open_to_all(self, queue: Queue) -> bool:
        """Whether every account may delete a queue, or change its permissions."""
        if isinstance(queue, OutgoingQueue) or queue.queue_type is QueueType.SYSTEM:
            return False
        return bool(self._prepare(queue.security, QUEUE_MAPPING).granted(_ALL) & _RULING)

    def is_readable_by_all(self, security: bytes) -> bool:
        """Whether a queue's descriptor lets everybody read messages, or take ownership (G272)."""
        granted = self._prepare(security, QUEUE_MAPPING).granted(_ALL) if security else 0
        reading = MQQUEUEACCESSMASK.MQSEC_RECEIVE_MESSAGE
        taking = granted & MQQUEUEACCESSMASK.MQSEC_TAKE_QUEUE_OWNERSHIP
        return granted & reading == reading or bool(taking)

    def readable_security(self, queue: Queue, identity: Identity) -> bytes:
        """The descriptor of a queue, empty for a caller who may not read it."""
        security = queue.main.security
        rights = MQQUEUEACCESSMASK.MQSEC_GET_QUEUE_PERMISSIONS
        return security if security and self.allows(queue, identity, rights) else b""

    def application_queue_security(self, identity: Identity, world_readable: bool) -> bytes:
        """The descriptor of a queue that a program makes by [MC-MQAC] 3.10.4.1.26.1 (G272)."""
        owner = owner_for(identity)
        dacl = application_access_list(owner, world_readable)
        return SecurityDescriptor(owner=owner, dacl=dacl).encode()

    def _check(
        self,
        security: bytes,
        mapping: GenericMapping,
        identity: Identity | None,
        rights: int,
        what: str,
        queue: Queue | None,
    ) -> None:
        if identity is None:
            return
        prepared, desired = self._prepare(security, mapping), int(rights)
        granted = self._grants(security, mapping, identity, desired, queue)
        audited = prepared.audited and prepared.audits(identity.sids, desired, granted)
        if not granted:
            words = QUEUE if mapping is QUEUE_MAPPING else MACHINE
            held = prepared.granted(identity.sids)
            _refuse(identity, what, rights, audited, words=words, granted=held)
        if audited:
            _log.info("access granted", **_line(identity, what, rights, audited))

    def _prepare(self, security: bytes, mapping: GenericMapping) -> PreparedDescriptor:
        key = (security, id(mapping))
        prepared = self._prepared.get(key)
        if prepared is None:
            if len(self._prepared) >= _CACHE_AT_MOST or self._prepared_octets > PREPARED_OCTETS:
                self._prepared.clear()
                self._prepared_octets = 0
            self._prepared_octets += len(security)
            descriptor = SecurityDescriptor.decode(security)
            prepared = self._prepared[key] = PreparedDescriptor(descriptor, mapping)
        return prepared

    def check_open(self, queue: Queue, identity: Identity | None, access: QueueAccessType) -> None:
        """Raise unless the caller has the rights for opening (G9): receive 0x3, peek 0x2, journal
        0xA, send 0x4.

        System journals and dead-letter queues have their bits in the machine's descriptor; the
        order and notification queues are nobody's ([MS-MQDMPR] 3.1.3). An outgoing queue is its
        administrators'.
        """
        if identity is None:
            return
        key = (id(identity), queue.queue_id, access)
        known = self._let_in.get(key)
        if known is not None and known.holds(identity, queue.main):
            return
        self._check_open(queue, identity, access)
        if not isinstance(queue, OutgoingQueue) and self._machine_rights(queue, access) is None:
            self._remember(key, identity, queue)

    def _remember(
        self, key: tuple[int, int, QueueAccessType], identity: Identity, queue: Queue
    ) -> None:
        """Remember that a caller was let in, if the log need not report callers that are."""
        if self._prepare(queue.main.security, QUEUE_MAPPING).audited:
            return
        if len(self._let_in) >= LET_IN_AT_MOST:
            self._let_in.clear()
        main = queue.main
        self._let_in[key] = _LetIn(identity, main.security, main.pathname)

    def forget(self, sid: str) -> None:
        """Forget the openings of an account that has ended."""
        gone = [key for key, known in self._let_in.items() if known.identity.sid == sid]
        for key in gone:
            del self._let_in[key]

    def _check_open(self, queue: Queue, identity: Identity, access: QueueAccessType) -> None:
        if isinstance(queue, OutgoingQueue):
            if not _may_open_outgoing(queue, identity, access):
                _refuse(identity, "an outgoing queue", _OPEN_RIGHTS[access])
        elif is_internal(queue):
            _refuse(identity, queue.pathname, _OPEN_RIGHTS[access])
        elif (rights := self._machine_rights(queue, access)) is not None:
            self.check_queue_manager(identity, rights, queue)
        else:
            self.check_queue(queue, identity, _queue_rights(queue, access))

    def may_open(self, queue: Queue, identity: Identity, access: QueueAccessType) -> bool:
        """Whether `check_open` lets an identity in; nothing is logged, because it opens nothing."""
        if isinstance(queue, OutgoingQueue):
            return _may_open_outgoing(queue, identity, access)
        if is_internal(queue):
            return False
        try:
            rights = self._machine_rights(queue, access)
            if rights is None:
                return self.allows(queue, identity, _queue_rights(queue, access))
        except MQError:
            return False
        return self._machine_grants(identity, rights, queue)

    def may_create(self, identity: Identity) -> bool:
        """Whether the machine's descriptor lets an identity make queues."""
        return self._machine_grants(identity, MQQMACCESSMASK.MQSEC_CREATE_QUEUE, None)

    def _machine_grants(self, identity: Identity, rights: int, queue: Queue | None) -> bool:
        security = self._queue_manager.security
        return self._grants(security, QUEUE_MANAGER_MAPPING, identity, rights, queue)

    def _machine_rights(self, queue: Queue, access: QueueAccessType) -> MQQMACCESSMASK | None:
        """The rights on the machine that opening a system queue takes, None for other queues.

        Raises MQ_ERROR_ACCESS_DENIED for sending to one, which nobody may.
        """
        if queue is self._queue_manager.system_journal_queue:
            receiving = MQQMACCESSMASK.MQSEC_RECEIVE_JOURNAL_QUEUE_MESSAGE
            peeking = MQQMACCESSMASK.MQSEC_PEEK_JOURNAL_QUEUE_MESSAGE
        elif is_deadletter(queue):
            receiving = MQQMACCESSMASK.MQSEC_RECEIVE_DEADLETTER_MESSAGE
            peeking = MQQMACCESSMASK.MQSEC_PEEK_DEADLETTER_MESSAGE
        else:
            return None
        if access in (QueueAccessType.SEND_ACCESS, QueueAccessType.MOVE_ACCESS):
            raise MQError(HResult.MQ_ERROR_ACCESS_DENIED, "a system queue")
        return receiving if access in RECEIVING else peeking

    # Descriptors

    def get_queue_security(self, queue: Queue, parts: int, identity: Identity | None) -> bytes:
        """The `parts` (SecurityInformation) of a queue's descriptor, self-relative.

        Raises MQ_ERROR_PRIVILEGE_NOT_HELD if the auditing part is asked for by others than
        administrators.
        """
        _check_auditing(parts, identity)
        self.check_queue(queue, identity, MQQUEUEACCESSMASK.MQSEC_GET_QUEUE_PERMISSIONS)
        return SecurityDescriptor.decode(queue.main.security).selected(parts).encode()

    def changed_queue_security(
        self, queue: Queue, parts: int, change: bytes, identity: Identity | None
    ) -> bytes:
        """The queue's descriptor with `parts` from `change`, after the checks.

        Others than administrators give a queue to nobody but themselves and their groups, and
        change no auditing (MQ_ERROR_ACCESS_DENIED, MQ_ERROR_PRIVILEGE_NOT_HELD).
        Raises MQ_ERROR_ILLEGAL_SECURITY_DESCRIPTOR for bytes that are no
        descriptor.
        """
        _check_auditing(parts, identity)
        rights = _rights_to_change(
            parts,
            MQQUEUEACCESSMASK.MQSEC_CHANGE_QUEUE_PERMISSIONS,
            MQQUEUEACCESSMASK.MQSEC_TAKE_QUEUE_OWNERSHIP,
        )
        self.check_queue(queue, identity, rights)
        if parts & SecurityInformation.OWNER_SECURITY_INFORMATION:
            _check_new_owner(queue.pathname, change, identity)
        return _replaced(queue.main.security, parts, change)

    def get_queue_manager_security(self, parts: int, identity: Identity | None) -> bytes:
        """The `parts` of the machine's descriptor, self-relative; refusals as for a queue's."""
        _check_auditing(parts, identity)
        self.check_queue_manager(identity, MQQMACCESSMASK.MQSEC_GET_MACHINE_PERMISSIONS)
        security = self._queue_manager.security
        return SecurityDescriptor.decode(security).selected(parts).encode()

    def set_queue_manager_security(
        self, parts: int, change: bytes, identity: Identity | None
    ) -> Completion[None]:
        """Replace `parts` of the machine's descriptor; done when durable.

        Refusals are those of `changed_queue_security`.
        """
        _check_auditing(parts, identity)
        rights = _rights_to_change(
            parts,
            MQQMACCESSMASK.MQSEC_CHANGE_MACHINE_PERMISSIONS,
            MQQMACCESSMASK.MQSEC_TAKE_MACHINE_OWNERSHIP,
        )
        self.check_queue_manager(identity, rights)
        if parts & SecurityInformation.OWNER_SECURITY_INFORMATION:
            _check_new_owner("the queue manager", change, identity)
        queue_manager = self._queue_manager
        before = queue_manager.security
        queue_manager.security = _replaced(before, parts, change)
        try:
            return save_queue_manager(self._store, queue_manager)
        except BaseException:
            queue_manager.security = before
            raise

    def default_queue_security(self, identity: Identity | None, supplied: bytes = b"") -> bytes:
        """Create Default Queue Security Descriptor ([MS-MQDMPR] 3.1.7.1.3.1).

        A supplied access list is kept. Without one the owner gets everything, Everyone peek,
        receive and send, Anonymous send; or the section's list for a workgroup, if the switch
        `workgroup_default_security` is on; without it Anonymous owns no new queue (G83).
        """
        given = _decoded(supplied) if supplied else SecurityDescriptor()
        if given.sacl is not None:
            _check_auditing(SecurityInformation.SACL_SECURITY_INFORMATION, identity)
        workgroup = self._settings.workgroup_default_security
        if given.dacl is None and workgroup:
            dacl = workgroup_access_list(self._queue_manager.srmp_http_support)
            return replace(given, owner=ANONYMOUS, dacl=dacl).encode()
        owner = given.owner or owner_for(identity)
        if owner == ANONYMOUS and not workgroup:
            owner = BUILTIN_ADMINISTRATORS
        return replace(given, owner=owner, dacl=given.dacl or default_access_list(owner)).encode()

    def default_queue_manager_security(self) -> bytes:
        """Administrators may do everything, users create queues, everybody look."""
        aces = (
            allow(BUILTIN_ADMINISTRATORS, MQQMACCESSMASK.MQSEC_MACHINE_GENERIC_ALL),
            allow(AUTHENTICATED_USERS, MQQMACCESSMASK.MQSEC_MACHINE_GENERIC_WRITE),
            allow(EVERYONE, MQQMACCESSMASK.MQSEC_MACHINE_WORLD_RIGHTS),
        )
        return SecurityDescriptor(owner=BUILTIN_ADMINISTRATORS, dacl=Acl(aces)).encode()


_PROBING = ContextVar("probing", default=False)


@contextmanager
def probing() -> Iterator[None]:
    """Log no refusals within the block, unless the descriptor wants them audited.

    A page asks in this way what it may show; its reader has not tried anything.
    """
    before = _PROBING.set(True)
    try:
        yield
    finally:
        _PROBING.reset(before)


_RULERS = "administrators"
_LOOKERS = "administrators and accounts that see all and change nothing"
_CHANGERS = "accounts that may change something"
_READERS_OF_METRICS = f"{_LOOKERS}, and tokens of both with peek on all queues,"


def require_administrator(identity: Identity) -> None:
    """Raise MQError(MQ_ERROR_ACCESS_DENIED) if the caller is not an administrator."""
    if not identity.is_administrator:
        raise denied_to(identity, _RULERS)


def require_observer(identity: Identity) -> None:
    """Raise MQ_ERROR_ACCESS_DENIED if the caller may not see what administrators see (G654)."""
    if not identity.may_look:
        raise denied_to(identity, _LOOKERS, looks=True)


def refuse_read_only(identity: Identity) -> None:
    """Raise MQ_ERROR_ACCESS_DENIED for a read-only account, where any other may change it."""
    if identity.read_only:
        raise denied_to(identity, _CHANGERS)


def require_metrics_reader(identity: Identity) -> None:
    """Raise MQ_ERROR_ACCESS_DENIED unless the caller may see the metrics of all queues (G362).

    These are callers who may see everything, and bearers of their tokens that leave `peek` of every
    queue.
    """
    scope = identity.scope
    narrow = scope is not None and (scope.queues is not None or TokenRight.PEEK not in scope.rights)
    if narrow or not replace(identity, scope=None).may_look:
        raise denied_to(identity, _READERS_OF_METRICS, looks=True)


def _line(identity: Identity, what: str, rights: int, audited: bool) -> dict[str, object]:
    """The fields of a log line about an access."""
    return {
        "who": identity.name,
        "sid": identity.sid,
        **({} if identity.scope is None else {"token": identity.scope.token}),
        "object": what,
        "rights": f"{rights:#x}",
        "audited": audited,
        "always": audited,
    }


def _refuse(
    identity: Identity,
    what: str,
    rights: int,
    audited: bool = False,
    *,
    words: Vocabulary = QUEUE,
    granted: int = 0,
) -> NoReturn:
    """Log a refused access, and raise the error for the caller."""
    if audited or not _PROBING.get():
        _log.warning("access refused", **_line(identity, what, rights, audited))
    told = refusal(identity, what, rights, words, granted)
    raise MQError(HResult.MQ_ERROR_ACCESS_DENIED, told)


def _check_auditing(parts: int, identity: Identity | None) -> None:
    """Raise MQError if a caller without SeSecurityPrivilege asks for the audit list."""
    if not parts & SecurityInformation.SACL_SECURITY_INFORMATION or identity is None:
        return
    whole = identity.scope is None or identity.scope.is_whole
    if not whole or not privileges_of(identity.sids) & Privilege.SeSecurityPrivilege:
        raise MQError(HResult.MQ_ERROR_PRIVILEGE_NOT_HELD, identity.name)


def _check_new_owner(what: str, change: bytes, identity: Identity | None) -> None:
    if identity is None or identity.is_administrator:
        return
    if str(_decoded(change).owner) not in identity.sids:
        _refuse(identity, what, MQQUEUEACCESSMASK.MQSEC_TAKE_QUEUE_OWNERSHIP)


def _rights_to_change(parts: int, permissions: int, ownership: int) -> int:
    """The rights for changing parts of a descriptor; the owner part has its own right."""
    owner = SecurityInformation.OWNER_SECURITY_INFORMATION
    return (permissions if parts & ~owner else 0) | (ownership if parts & owner else 0)


def _may_open_outgoing(queue: OutgoingQueue, identity: Identity, access: QueueAccessType) -> bool:
    """Everybody may send to it; reading its waiting messages is for administrators."""
    scope = identity.scope
    in_scope = scope is None or permits(scope, QUEUE_MAPPING, _OPEN_RIGHTS[access], queue)
    reads = access != QueueAccessType.SEND_ACCESS
    closed = not in_scope or identity.validity.ended
    if access in _PEEKING:
        return not closed and identity.may_look
    return not (closed or identity.read_only or (reads and not identity.is_administrator))


def _queue_rights(queue: Queue, access: QueueAccessType) -> MQQUEUEACCESSMASK:
    """The rights on a queue, a subqueue or a journal; raises MQError for sending to a journal."""
    return _journal_rights(access) if queue.is_journal else _OPEN_RIGHTS[access]


def _journal_rights(access: QueueAccessType) -> MQQUEUEACCESSMASK:
    if access == QueueAccessType.SEND_ACCESS:
        raise MQError(HResult.MQ_ERROR_ACCESS_DENIED, "a journal")
    if access in RECEIVING:
        return MQQUEUEACCESSMASK.MQSEC_RECEIVE_JOURNAL_MESSAGE
    return _OPEN_RIGHTS[access]


def _decoded(security: bytes) -> SecurityDescriptor:
    try:
        return SecurityDescriptor.decode(security)
    except DecodeError as error:
        raise MQError(HResult.MQ_ERROR_ILLEGAL_SECURITY_DESCRIPTOR, error.reason) from error


def _replaced(security: bytes, parts: int, change: bytes) -> bytes:
    current = SecurityDescriptor.decode(security)
    return current.replaced(_decoded(change), parts).encode()
