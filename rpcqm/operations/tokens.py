"""Tokens that programs show instead of a password, for administrators."""

from collections.abc import Iterable, Sequence
from typing import Protocol

from rpcqm.base.completion import Completion
from rpcqm.base.identity import ALL_RIGHTS, Identity, TokenRight
from rpcqm.operations.audit import ordered
from rpcqm.qm.access import require_administrator, require_observer


class TokenView(Protocol):
    """The attributes of a token that administrators see.

    Times are milliseconds since 1970, `expires` is 0 for never; `queues` is None for all of
    them, and `keys` are what scopes compare.
    """

    @property
    def name(self) -> str: ...
    @property
    def account(self) -> str: ...
    @property
    def rights(self) -> frozenset[TokenRight]: ...
    @property
    def queues(self) -> tuple[str, ...] | None: ...
    @property
    def keys(self) -> frozenset[str] | None: ...
    @property
    def created(self) -> int: ...
    @property
    def expires(self) -> int: ...


class TokenKeeper(Protocol):
    """Keeps the tokens; its methods raise MQError if they refuse."""

    def create(
        self,
        name: str,
        account: str,
        rights: Iterable[TokenRight] = ALL_RIGHTS,
        queues: Sequence[str] | None = None,
        life: int = 0,
    ) -> Completion[str]: ...
    def delete(self, name: str) -> Completion[None]: ...
    def list(self) -> Sequence[TokenView]: ...
    def find(self, name: str) -> TokenView | None: ...
    def verify(self, text: str) -> Identity | None: ...


class TokenOperations:
    """Raises MQ_ERROR_ACCESS_DENIED for others than administrators."""

    def __init__(self, tokens: TokenKeeper) -> None:
        self._tokens = tokens

    def create(
        self,
        identity: Identity,
        name: str,
        account: str,
        rights: Iterable[TokenRight] = ALL_RIGHTS,
        queues: Sequence[str] | None = None,
        life: int = 0,
    ) -> Completion[str]:
        """Make a token of an account; its text is told once it is durable, and never again.

        `queues` (None for all) and `rights` narrow it; it ends after `life` ms, or never (0).
        Raises MQError: STATUS_INVALID_PARAMETER, STATUS_OBJECT_NAME_COLLISION,
        STATUS_NO_SUCH_USER, MQ_ERROR_INSUFFICIENT_RESOURCES, and those of names.
        """
        with ordered(identity, "create token", name):
            require_administrator(identity)
            return self._tokens.create(name, account, rights, queues, life)

    def delete(self, identity: Identity, name: str) -> Completion[None]:
        """Delete a token, which nobody can use any more from now on.

        Raises MQError(STATUS_OBJECT_NAME_NOT_FOUND).
        """
        with ordered(identity, "delete token", name):
            require_administrator(identity)
            return self._tokens.delete(name)

    def list(self, identity: Identity) -> Sequence[TokenView]:
        """All tokens, by name, without their texts."""
        require_observer(identity)
        return self._tokens.list()

    def verify(self, text: str) -> Identity | None:
        """Who shows a token, with no more rights than it leaves; None if it is wrong or over."""
        return self._tokens.verify(text)
