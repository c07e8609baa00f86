"""Accounts that callers log on with, for administrators."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from rpcqm.adm.directory import DirectoryUnavailableError
from rpcqm.base.completion import Completion
from rpcqm.base.errors import HResult, MQError
from rpcqm.base.identity import Identity
from rpcqm.operations.account_names import ADMINISTRATOR, AccountNames
from rpcqm.operations.audit import ordered
from rpcqm.qm.access import require_administrator, require_observer


class AccountView(Protocol):
    """The attributes of an account that administrators see."""

    @property
    def name(self) -> str: ...
    @property
    def sid(self) -> str: ...
    @property
    def groups(self) -> tuple[str, ...]: ...


class AccountKeeper(Protocol):
    """Keeps the accounts; its methods raise MQError if they refuse."""

    def add(self, name: str, nt_hash: bytes, groups: Sequence[str] = ()) -> Completion[str]: ...
    def set_password(self, name: str, nt_hash: bytes) -> Completion[None]: ...
    def remove(self, name: str) -> Completion[None]: ...
    def list(self) -> Sequence[AccountView]: ...
    def identity_of_sid(self, sid: str) -> Identity: ...
    @property
    def machine_sid(self) -> str: ...


class NamesElsewhere(Protocol):
    """Knows the accounts and groups of a domain."""

    def name_of(self, sid: str) -> str: ...
    def sid_of(self, name: str) -> str: ...
    def look_up(self, who: Collection[str]) -> Completion[Mapping[str, str]]: ...


@dataclass(frozen=True, slots=True)
class AccountOfDomain:
    """An account or a group of a domain."""

    name: str
    sid: str
    groups: tuple[str, ...] = ()


class AccountOperations:
    """Raises MQ_ERROR_ACCESS_DENIED for others than administrators."""

    def __init__(self, accounts: AccountKeeper) -> None:
        self._accounts = accounts
        self.elsewhere: NamesElsewhere | None = None
        """The accounts of a domain, if there is one."""

    def add(
        self, identity: Identity, name: str, nt_hash: bytes, groups: Sequence[str] = ()
    ) -> Completion[str]:
        """Create an account; its SID is told once it is durable."""
        with ordered(identity, "add account", name):
            require_administrator(identity)
            return self._accounts.add(name, nt_hash, groups)

    def set_password(self, identity: Identity, name: str, nt_hash: bytes) -> Completion[None]:
        """Give an account another password; only its NT hash is kept."""
        with ordered(identity, "set password", name):
            require_administrator(identity)
            return self._accounts.set_password(name, nt_hash)

    def remove(self, identity: Identity, name: str) -> Completion[None]:
        """Delete an account, which cannot log on from now on."""
        with ordered(identity, "remove account", name):
            require_administrator(identity)
            return self._accounts.remove(name)

    def list(self, identity: Identity) -> Sequence[AccountView]:
        """All accounts, by name."""
        require_observer(identity)
        return self._accounts.list()

    @property
    def machine_sid(self) -> str:
        """The beginning of the SIDs of all accounts here."""
        return self._accounts.machine_sid

    def identity_of_sid(self, identity: Identity, sid: str) -> Identity:
        """The identity of the account with a SID, with its groups."""
        require_observer(identity)
        return self._accounts.identity_of_sid(sid)

    def names(self, identity: Identity, administrator: str = ADMINISTRATOR) -> AccountNames:
        """Names in place of SIDs; others than administrators know their own and those of groups.

        `administrator` is what root is called.
        """
        if not identity.may_look:
            return AccountNames({identity.sid: identity.name})
        accounts = {each.sid: each.name for each in self._accounts.list()}
        machine, elsewhere = self._accounts.machine_sid, self.elsewhere
        if elsewhere is None:
            return AccountNames(accounts, machine, administrator)
        return AccountNames(accounts, machine, administrator, elsewhere.name_of)

    def sid_of_domain(self, identity: Identity, name: str) -> str:
        """The SID of an account or group of the domain by a displayed name; "" for others."""
        if self.elsewhere is None or not identity.may_look:
            return ""
        return self.elsewhere.sid_of(name)

    async def look_up(self, identity: Identity, who: Collection[str]) -> Mapping[str, str]:
        """Names of accounts and groups of the domain by their SIDs; MQ_ERROR_NO_DS offline."""
        require_observer(identity)
        if self.elsewhere is None:
            return {}
        try:
            return await self.elsewhere.look_up(who)
        except DirectoryUnavailableError as error:
            raise MQError(HResult.MQ_ERROR_NO_DS, str(error)) from error
