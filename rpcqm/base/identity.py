"""A caller: its name, its security identifier and the groups that it belongs to."""

import enum
from dataclasses import dataclass, field, replace

EVERYONE = "S-1-1-0"
ANONYMOUS_LOGON = "S-1-5-7"
AUTHENTICATED_USERS = "S-1-5-11"
LOCAL_SYSTEM = "S-1-5-18"
BUILTIN_ADMINISTRATORS = "S-1-5-32-544"
ADMINISTRATOR_IDENTIFIER = 500
"""The end of the SID that root and the queue manager's own user have ([MS-DTYP] 2.4.2.4)."""


def folded_name(name: str) -> str:
    """The form in which names of accounts are compared everywhere."""
    return name.casefold()


class TokenRight(enum.StrEnum):
    """What a token lets its bearer do, within the rights of its account."""

    PEEK = "peek"
    SEND = "send"
    RECEIVE = "receive"
    MANAGE = "manage"

    @property
    def bit(self) -> int:
        """The bit that stands for the right in calls (idl/rpcqm_admin.idl)."""
        return 1 << list(TokenRight).index(self)


ALL_RIGHTS = frozenset(TokenRight)


@dataclass(frozen=True, slots=True)
class TokenScope:
    r"""The rights that a token leaves of its account's; it adds none.

    `queues` are keys of queues (`private$\orders`, `system$;deadletter`) and format names, all
    folded; None means every queue and the queue manager itself.
    """

    token: str
    rights: frozenset[TokenRight] = ALL_RIGHTS
    queues: frozenset[str] | None = None

    @property
    def is_whole(self) -> bool:
        """Whether the token leaves every right of its account."""
        return self.queues is None and self.rights >= ALL_RIGHTS


class Validity:
    """Whether a logon still counts: `ended` is true once it does not.

    All identities of one state of an account share it (G403).
    """

    __slots__ = ("__weakref__", "ended")

    def __init__(self) -> None:
        self.ended = False


ALWAYS = Validity()
"""For callers without an account that could end."""


@dataclass(frozen=True, slots=True)
class Identity:
    """A caller for access checks ([MS-DTYP] 2.5.2).

    `sid` and `groups` are in the S-1-… form. Everyone is a group of all callers who have logged on,
    and only of those. With a `scope` it is the bearer of a token, who has no more rights than both
    the account and the scope have; `qm/access.py` checks that, and nobody else reads `sids`.
    """

    name: str
    sid: str
    groups: frozenset[str] = frozenset({EVERYONE})
    scope: TokenScope | None = None
    read_only: bool = False
    """Whether the caller may see what administrators see, but change nothing (G654)."""
    validity: Validity = field(default=ALWAYS, repr=False, compare=False)
    sids: frozenset[str] = field(init=False, repr=False, compare=False)
    """The SIDs of the caller and its groups, against which descriptors are checked."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "sids", self.groups | {self.sid})

    @property
    def is_administrator(self) -> bool:
        """Whether the caller may do everything; the bearer of a token only if the token leaves
        every right."""
        return not self.read_only and self.may_look

    @property
    def may_look(self) -> bool:
        """Whether the caller may see everything: administrators and read-only accounts (G654)."""
        if self.validity.ended:
            return False
        if self.scope is not None and not self.scope.is_whole:
            return False
        return BUILTIN_ADMINISTRATORS in self.groups or LOCAL_SYSTEM in self.groups

    def narrowed(self, scope: TokenScope) -> "Identity":
        """The same account as the bearer of a token."""
        return replace(self, scope=scope)

    @property
    def has_ended(self) -> bool:
        """Whether the account was removed, or got another password or other groups, since the
        logon."""
        return self.validity.ended

    @property
    def is_anonymous(self) -> bool:
        return self.sid == ANONYMOUS_LOGON


def authenticated(
    name: str, sid: str, *groups: str, validity: Validity = ALWAYS, read_only: bool = False
) -> Identity:
    """The identity of a caller who has logged on: a member of Everyone and Authenticated Users."""
    everybody = frozenset({EVERYONE, AUTHENTICATED_USERS, *groups})
    return Identity(name, sid, everybody, read_only=read_only, validity=validity)


ANONYMOUS = Identity("ANONYMOUS LOGON", ANONYMOUS_LOGON, frozenset())
"""A caller that has proved nothing; it is in no group, not even in Everyone (G83)."""
