"""Accounts of a domain, as tickets bring them: who they are here, and which have ended.

The domain keeps them. Here is known of whoever has logged on, for as long as anything is open.
"""

import re
from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping
from weakref import WeakValueDictionary

from rpcqm.base.identity import (
    ANONYMOUS,
    BUILTIN_ADMINISTRATORS,
    Identity,
    Validity,
    authenticated,
    folded_name,
)
from rpcqm.base.log import get_logger
from rpcqm.codec.security.logon_information import LogonInformation
from rpcqm.config.directory_section import DOMAIN, DirectorySection

MOST_REMEMBERED = 4096
"""Accounts of the domain whose groups are remembered from their last logon.

Each takes some kilobytes with its groups.

Bound `domain.remembered` [accounts]: the one that has not logged on for longest is forgotten.
"""
MOST_ENDED = 10_000
"""Accounts of the domain of which it is remembered that the directory has ended them.

Until their tickets are over nobody else refuses them.

Bound `domain.ended` [accounts]: the one that has ended first is forgotten.
"""

_ACCOUNTS = "S-1-5-21-"
_NAME = re.compile(r'[^\x00-\x1f\x7f"/\\\[\]:;|=,+*?<>]{1,256}')

_log = get_logger("service")


class DomainAccounts:
    """The accounts of one domain; `machine` is what the SIDs of local accounts begin with.

    Whoever is or has a SID of `administrators` administers this queue manager; the domain's own
    administrators do not for that alone (G771).
    """

    def __init__(self, machine: str, administrators: Collection[str] = ()) -> None:
        self._machine = machine
        self._administrators = frozenset(administrators)
        self._names: set[str] = set()
        self._known: OrderedDict[str, Identity] = OrderedDict()
        self._said: dict[str, LogonInformation] = {}
        """What made them who they are."""
        self._standing: WeakValueDictionary[str, Validity] = WeakValueDictionary()
        self._ended: OrderedDict[str, None] = OrderedDict()
        self.ended_hooks: list[Callable[[str], None]] = []
        """Told of the SID of an account that the directory has ended: what is open of it ends."""
        self.groups_of: Callable[[str], frozenset[str]] = lambda _: frozenset()
        """The groups that the directory has of an account with certificates."""
        self.logon_hooks: list[Callable[[str], None]] = []
        """Told of the SID of an account that logs on."""

    def log_on(self, information: LogonInformation) -> Identity | None:
        """Who an account is; it keeps these groups until it logs on again (G772)."""
        sid = str(information.sid)
        if self._said.get(sid) is not information and not self._take(sid, information):
            return None
        for hook in self.logon_hooks:
            hook(sid)
        self._known.move_to_end(sid)
        return self._known[sid]

    def _take(self, sid: str, information: LogonInformation) -> bool:
        """Let an account have the groups that are said of it, unless it may not log on."""
        if sid in self._ended or self._is_local(sid) or not _are_names(information):
            return False
        self.add_name(information.domain)
        made = self._made(sid, information)
        if self._known.get(sid) != made:
            self._known[sid] = made
        self._said[sid] = information
        if len(self._known) > MOST_REMEMBERED:
            forgotten, _ = self._known.popitem(last=False)
            del self._said[forgotten]
        return True

    def _made(self, sid: str, information: LogonInformation) -> Identity:
        name = f"{information.domain}\\{information.account}"
        return self._authenticated(name, sid, frozenset(map(str, information.groups)))

    def _authenticated(self, name: str, sid: str, told: frozenset[str]) -> Identity:
        """An account with those of its groups that a domain gives."""
        groups = {each for each in told if not self._is_local(each)}
        if not self._administrators.isdisjoint(groups | {sid}):
            groups.add(BUILTIN_ADMINISTRATORS)
        return authenticated(name, sid, *groups, validity=self._validity(sid))

    def identity_of_sid(self, sid: str) -> Identity:
        """Who has a SID now: with the groups of the last logon, and Anonymous once it has ended."""
        if sid in self._ended:
            return ANONYMOUS
        known = self._known.get(sid)
        return self.signer_of(sid) if known is None else known

    def name_of(self, sid: str) -> str:
        """The name with which an account has logged on, "" of any other."""
        known = self._known.get(sid)
        return known.name if known is not None else ""

    def names(self) -> list[tuple[str, str]]:
        """SIDs and names of the accounts that have logged on."""
        return [(sid, each.name) for sid, each in self._known.items()]

    def is_of(self, sid: str) -> bool:
        """Whether a SID is one that a domain gives to its accounts."""
        return sid.startswith(_ACCOUNTS) and not self._is_local(sid)

    def add_name(self, domain: str) -> None:
        """Let the domain have another name, as `is_named` counts them."""
        self._names |= {folded_name(each) for each in (domain, domain.partition(".")[0]) if each}

    def signer_of(self, sid: str) -> Identity:
        """Who has signed with a certificate of an account, with the groups that the directory has.

        Anonymous once it has ended (G776).
        """
        if sid in self._ended:
            return ANONYMOUS
        name = self.name_of(sid) or sid
        return self._authenticated(name, sid, self.groups_of(sid))

    def is_named(self, domain: str) -> bool:
        """Whether that is a name of this domain."""
        return folded_name(domain) in self._names

    def has_ended(self, sid: str) -> bool:
        """Whether the directory has ended an account."""
        return sid in self._ended

    def open_accounts(self) -> list[str]:
        """The SIDs of all accounts of which anything may be open, and of those that have ended."""
        return [*self._standing, *self._ended]

    def take_over(self, standing: Mapping[str, bool]) -> None:
        """What the directory says: by SID, whether an account is there and may log on."""
        for sid, stands in standing.items():
            if not stands:
                self.end(sid)
            elif sid in self._ended:
                del self._ended[sid]
                _log.info("an account of the domain may log on again", sid=sid)

    def end(self, sid: str) -> None:
        """End what is open of an account; it does not log on until the directory has it again."""
        if sid in self._ended:
            return
        self._ended[sid] = None
        if len(self._ended) > MOST_ENDED:
            self._ended.popitem(last=False)
        known = self._known.pop(sid, None)
        self._said.pop(sid, None)
        validity = self._standing.pop(sid, None)
        if validity is not None:
            validity.ended = True
        _log.info(
            "an account of the domain has ended", sid=sid, account=known.name if known else ""
        )
        for hook in self.ended_hooks:
            hook(sid)

    def _validity(self, sid: str) -> Validity:
        """The same one for all that is open of an account."""
        known = self._standing.get(sid)
        if known is None:
            known = self._standing[sid] = Validity()
        return known

    def _is_local(self, sid: str) -> bool:
        """Whether only this machine gives such a SID."""
        return sid.startswith(f"{self._machine}-")


def domain_accounts(section: DirectorySection, machine: str) -> DomainAccounts | None:
    """The accounts of the domain that a configuration wants; None if those here are alone."""
    if section.accounts != DOMAIN:
        return None
    made = DomainAccounts(machine, section.administrators)
    made.add_name(section.domain)
    return made


def _are_names(information: LogonInformation) -> bool:
    """Whether lists and logs can show the names as they are."""
    names = information.domain, information.account
    return all(_NAME.fullmatch(each) and each.isprintable() for each in names)
