"""Who a caller is: a name, a security identifier and the groups it belongs to."""

from dataclasses import dataclass

EVERYONE = "S-1-1-0"
ANONYMOUS_LOGON = "S-1-5-7"
AUTHENTICATED_USERS = "S-1-5-11"
LOCAL_SYSTEM = "S-1-5-18"
BUILTIN_ADMINISTRATORS = "S-1-5-32-544"


def folded_name(name: str) -> str:
    """The form in which names of accounts are compared, wherever that is done."""
    return name.casefold()


@dataclass(frozen=True, slots=True)
class Identity:
    """A caller for access checks ([MS-DTYP] 2.5.2).

    `sid` and `groups` are in the S-1-… form. Everyone is a group of all callers who have logged on,
    and only of those.
    """

    name: str
    sid: str
    groups: frozenset[str] = frozenset({EVERYONE})

    @property
    def is_administrator(self) -> bool:
        return BUILTIN_ADMINISTRATORS in self.groups or LOCAL_SYSTEM in self.groups

    @property
    def is_anonymous(self) -> bool:
        return self.sid == ANONYMOUS_LOGON

    @property
    def sids(self) -> frozenset[str]:
        """The identifiers of the caller and its groups, which descriptors are checked against."""
        return self.groups | {self.sid}


def authenticated(name: str, sid: str, *groups: str) -> Identity:
    """The identity of a caller who has logged on: a member of Everyone and Authenticated Users."""
    return Identity(name, sid, frozenset({EVERYONE, AUTHENTICATED_USERS, *groups}))


ANONYMOUS = Identity("ANONYMOUS LOGON", ANONYMOUS_LOGON, frozenset())
"""A caller that proved nothing; it is in no group, not even in Everyone (G83)."""
