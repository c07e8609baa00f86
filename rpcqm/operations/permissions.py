"""Who may do what, and why: permissions in words, and changes that overwrite nobody else's."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace

from rpcqm.adm.enums import QueueType
from rpcqm.adm.queue import OutgoingQueue
from rpcqm.base.completion import Completion
from rpcqm.base.errors import HResult, MQError, NtStatus
from rpcqm.base.identity import (
    ADMINISTRATOR_IDENTIFIER,
    ANONYMOUS,
    Identity,
    TokenScope,
    authenticated,
    folded_name,
)
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.security.access_check import PreparedDescriptor
from rpcqm.codec.security.descriptor import (
    OWNER_GROUP_AND_DACL,
    SecurityDescriptor,
    parts_of,
)
from rpcqm.codec.security.identifier import Sid
from rpcqm.codec.security.permissions import (
    QUEUE,
    WELL_KNOWN,
    denied,
    granted,
    has_way_back,
    revoked,
    undenied,
)
from rpcqm.operations.account_names import ADMINISTRATOR, AccountNames
from rpcqm.operations.accounts import AccountOperations
from rpcqm.operations.audit import refusals
from rpcqm.operations.machine import MachineOperations
from rpcqm.operations.queues import QueueOperations
from rpcqm.operations.tokens import TokenOperations
from rpcqm.qm.access_explained import Explanation
from rpcqm.qm.engine import QueueManagerEngine

ROOT = "root"
"""Another name of the administrator who has no account."""
ACTIONS = {"allow": granted, "deny": denied, "revoke": revoked, "revoke-denial": undenied}
"""What can be done to the entries of somebody."""

_VERSION_DIGITS = 16
_RULING = QUEUE.words["change-permissions"]


class PermissionsChangedError(MQError):
    """Somebody else has changed them since they were shown."""

    def __init__(self) -> None:
        said = "the permissions have been changed since they were shown; look at them again"
        super().__init__(HResult.MQ_ERROR_SHARING_VIOLATION, said)


class LocksOutError(MQError):
    """A change would take the right to change permissions from whoever orders it."""

    def __init__(self) -> None:
        said = "you could not change the permissions any more; say so (`lock_out`) if you mean that"
        super().__init__(HResult.MQ_ERROR_UNSUPPORTED_OPERATION, said)


@dataclass(frozen=True, slots=True)
class PermissionChange:
    """What is to become of the entries of `who`: one of ACTIONS with a mask of rights."""

    action: str
    who: str
    rights: int


@dataclass(frozen=True, slots=True)
class ShownPermissions:
    """A descriptor as somebody may see it; another `version` is another descriptor."""

    descriptor: SecurityDescriptor
    names: AccountNames
    version: str


@dataclass(frozen=True, slots=True)
class PlannedPermissions:
    """What the permissions of a queue would be, and whether the caller could not take it back."""

    before: ShownPermissions
    change: SecurityDescriptor
    after: SecurityDescriptor
    locks_out: bool


@dataclass(frozen=True, slots=True)
class Explained:
    """What an account may do by an explanation, with the names that the caller may know."""

    explanation: Explanation
    names: AccountNames
    owner: Sid | None


class PermissionOperations:
    """Permissions of a queue by its format name; None is the queue manager itself."""

    def __init__(
        self,
        engine: QueueManagerEngine,
        queues: QueueOperations,
        machine: MachineOperations,
        accounts: AccountOperations,
        tokens: TokenOperations,
    ) -> None:
        self._access = engine.access
        self._queues, self._machine = queues, machine
        self._accounts, self._tokens = accounts, tokens

    def shown(self, identity: Identity, name: FormatName | None) -> ShownPermissions:
        """The owner and the entries; raises MQ_ERROR_ACCESS_DENIED as the descriptor says."""
        parts = OWNER_GROUP_AND_DACL
        if name is None:
            octets = self._machine.security(identity, parts)
        else:
            octets = self._queues.security(identity, name, parts)
        version = hashlib.sha256(octets).hexdigest()[:_VERSION_DIGITS]
        names = self._accounts.names(identity)
        return ShownPermissions(SecurityDescriptor.decode(octets), names, version)

    def check_version(self, identity: Identity, name: FormatName | None, version: str) -> None:
        """Raise PermissionsChangedError unless the permissions are those of `version`, or ""."""
        if version and self.shown(identity, name).version != version:
            raise PermissionsChangedError

    def may_change(self, identity: Identity, name: FormatName) -> bool:
        """Whether the caller may change the permissions of a queue, if it has any of its own."""
        queue = self._queues.find(name)
        if isinstance(queue, OutgoingQueue) or queue.queue_type is QueueType.SYSTEM:
            return False
        return self._access.allows(queue, identity, _RULING)

    # Explaining

    def explain(
        self, identity: Identity, name: FormatName | None, account: str, token: str = ""
    ) -> Explained:
        """What an account may do, entry by entry; as the bearer of a token of it, if that is named.

        Who may see the permissions may ask for themselves and for groups, administrators for
        everybody. Raises MQError: STATUS_NO_SUCH_USER, STATUS_OBJECT_NAME_NOT_FOUND for a token.
        """
        shown = self.shown(identity, name)
        who = self._identity(identity, account)
        if token:
            who = self._narrowed(identity, who, token)
        queue = None if name is None else self._queues.find(name)
        explanation = self._access.explain(queue, who)
        return Explained(explanation, shown.names, shown.descriptor.owner)

    def _identity(self, identity: Identity, account: str) -> Identity:
        """Who an account is by its name, a word for a group, or its SID."""
        if folded_name(account) == folded_name(identity.name) or account == identity.sid:
            return identity
        word = folded_name(account)
        if word == "anonymous":
            return ANONYMOUS
        if word in WELL_KNOWN:
            return authenticated(word, str(WELL_KNOWN[word]))
        sid = str(self._sid(identity, account))
        if not identity.may_look or self._accounts.names(identity).is_removed(sid):
            raise MQError(NtStatus.STATUS_NO_SUCH_USER, account)
        return self._accounts.identity_of_sid(identity, sid)

    def _narrowed(self, identity: Identity, who: Identity, token: str) -> Identity:
        for each in self._tokens.list(identity):
            if each.name == token and folded_name(each.account) == folded_name(who.name):
                return who.narrowed(TokenScope(each.name, each.rights, each.keys))
        raise MQError(NtStatus.STATUS_OBJECT_NAME_NOT_FOUND, token)

    # Changing

    def planned(
        self,
        identity: Identity,
        name: FormatName,
        changes: Sequence[PermissionChange],
        owner: str = "",
    ) -> PlannedPermissions:
        """What changes would make of the permissions; nothing is done.

        Raises MQError: STATUS_NO_SUCH_USER, and MQ_ERROR_UNSUPPORTED_OPERATION for a list after
        which nobody could change the permissions.
        """
        before = self.shown(identity, name)
        descriptor = before.descriptor
        for each in changes:
            sid = self._sid(identity, each.who)
            changed = ACTIONS[each.action](descriptor, sid, each.rights, QUEUE)
            descriptor = replace(descriptor, dacl=changed.dacl)
        if changes and not has_way_back(descriptor):
            said = "nobody could change the permissions any more: let somebody do that first"
            raise MQError(HResult.MQ_ERROR_UNSUPPORTED_OPERATION, said)
        if owner:
            descriptor = replace(descriptor, owner=self._sid(identity, owner))
        change = SecurityDescriptor(
            owner=descriptor.owner if owner else None, dacl=descriptor.dacl if changes else None
        )
        locks_out = _rules(before.descriptor, identity) and not _rules(descriptor, identity)
        return PlannedPermissions(before, change, descriptor, locks_out)

    def change(
        self,
        identity: Identity,
        name: FormatName,
        changes: Sequence[PermissionChange],
        owner: str = "",
        version: str = "",
        lock_out: bool = False,
    ) -> Completion[None]:
        """Change entries and the owner of a queue in one order; done when durable.

        Raises as `planned` does, PermissionsChangedError if the permissions are those of `version`
        no more, and LocksOutError unless the caller has said `lock_out`.
        """
        with refusals(identity, "set permissions", self._queues.find(name).pathname):
            planned = self.planned(identity, name, changes, owner)
        if version and planned.before.version != version:
            raise PermissionsChangedError
        if planned.locks_out and not lock_out:
            raise LocksOutError
        parts = parts_of(planned.change)
        if not parts:
            raise MQError(HResult.MQ_ERROR_INVALID_PARAMETER, "neither an entry nor an owner")
        return self._queues.set_security(identity, name, parts, planned.change.encode())

    def _sid(self, identity: Identity, who: str) -> Sid:
        """The SID that a name, a word for a group or a SID in text form means."""
        word = folded_name(who)
        if word in WELL_KNOWN:
            return WELL_KNOWN[word]
        if word == folded_name(identity.name):
            return Sid.parse(identity.sid)
        if identity.may_look:
            for account in self._accounts.list(identity):
                if folded_name(account.name) == word:
                    return Sid.parse(account.sid)
            if word in (ADMINISTRATOR, ROOT):
                return Sid.parse(f"{self._accounts.machine_sid}-{ADMINISTRATOR_IDENTIFIER}")
        if sid := self._accounts.sid_of_domain(identity, who):
            return Sid.parse(sid)
        try:
            return Sid.parse(who.upper())
        except ValueError:
            raise MQError(NtStatus.STATUS_NO_SUCH_USER, who) from None


def _rules(descriptor: SecurityDescriptor, identity: Identity) -> bool:
    """Whether somebody may change permissions by a descriptor."""
    return PreparedDescriptor(descriptor).allows(identity.sids, _RULING)
