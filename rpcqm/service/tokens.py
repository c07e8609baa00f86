"""Tokens: what programs show instead of a password, with no more rights than they need (G350).

A token is `rpcqm_`, a public identifier and a secret of 256 random bits. Only a digest of it is
kept, in a record of the store beside the accounts; the text itself is told once.
"""

import hashlib
import hmac
import json
import re
import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from rpcqm.adm.queue import Queue
from rpcqm.base.clock import Clock
from rpcqm.base.completion import Completion
from rpcqm.base.errors import DecodeError, HResult, MQError, NtStatus
from rpcqm.base.identity import ALL_RIGHTS, Identity, TokenRight, TokenScope, folded_name
from rpcqm.qm.engine import QueueManagerEngine
from rpcqm.qm.token_scopes import scope_key
from rpcqm.service.accounts import Accounts
from rpcqm.store.records import Family
from rpcqm.store.store import Store
from rpcqm.store.transaction import StoreTransaction

RECORD_PREFIX = b"token:"

MOST_TOKENS = 10_000
"""Tokens, which administrators make.

Each takes about 1 KiB, and every one is a secret that somebody keeps.

Bound `tokens.in_all` [tokens]: the call is refused.
"""
MOST_QUEUES = 256
"""Queues that one token is for.

An account that needs more is given the rights itself.

Bound `tokens.queues_of_token` [queues]: the call is refused.
"""
LONGEST_LIFE = 10 * 365 * 86_400_000
"""After which time a token can end at most.

Ten years, so that a mistyped number is noticed.

Bound `tokens.longest_life` [milliseconds]: the call is refused.
"""

_NAME = re.compile(r"[^\x00-\x1f\x7f]{1,64}")
_TEXT = re.compile(r"rpcqm_([0-9a-f]{16})_([A-Za-z0-9_-]{43})", re.ASCII)
_PUBLIC = re.compile(r"rpcqm_[0-9a-f]{16}(?=_|$)", re.ASCII)
_IDENTIFIER_BYTES, _SECRET_BYTES = 8, 32
_NOBODY = bytes(32)
"""What the digest of an unknown token is compared with, so that it takes the same time."""


@dataclass(frozen=True, slots=True)
class Token:
    """What is kept of a token: times are milliseconds since 1970, `expires` is 0 for never.

    `queues` are the names that were given, `keys` what scopes compare; None for all queues. The
    account is known by its SID, which no later account of that name has.
    """

    name: str
    identifier: str
    digest: bytes
    account: str
    sid: str
    rights: frozenset[TokenRight]
    queues: tuple[str, ...] | None
    keys: frozenset[str] | None
    created: int
    expires: int

    @classmethod
    def decode(cls, value: bytes) -> "Token":
        """Read a record; raises DecodeError if it is damaged."""
        try:
            return cls._of(json.loads(value))
        except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
            raise DecodeError(f"damaged record of a token: {error!r}") from error

    @classmethod
    def _of(cls, fields: Mapping[str, Any]) -> "Token":
        queues, keys = fields["queues"], fields["keys"]
        return cls(
            str(fields["name"]),
            str(fields["id"]),
            bytes.fromhex(fields["digest"]),
            str(fields["account"]),
            str(fields["sid"]),
            frozenset(map(TokenRight, fields["rights"])),
            None if queues is None else tuple(queues),
            None if keys is None else frozenset(keys),
            int(fields["created"]),
            int(fields["expires"]),
        )

    def encode(self) -> bytes:
        fields = {
            "name": self.name,
            "id": self.identifier,
            "digest": self.digest.hex(),
            "account": self.account,
            "sid": self.sid,
            "rights": sorted(self.rights),
            "queues": self.queues,
            "keys": None if self.keys is None else sorted(self.keys),
            "created": self.created,
            "expires": self.expires,
        }
        return json.dumps(fields).encode()


class Tokens:
    """The tokens of one queue manager; names are compared without regard to case.

    `key_of` gives the key of a queue's name, as scopes have it.
    """

    def __init__(
        self, store: Store, accounts: Accounts, clock: Clock, key_of: Callable[[str], str]
    ) -> None:
        self._store = store
        self._accounts = accounts
        self._clock = clock
        self._key_of = key_of
        self._tokens = {
            folded_name(token.name): token
            for _, value in store.records(Family.META, RECORD_PREFIX)
            for token in [Token.decode(value)]
        }
        self._by_identifier = {token.identifier: token for token in self._tokens.values()}
        self._bearers: dict[str, tuple[Identity, Identity]] = {}
        """By identifier: an account, and the same as the bearer of the token."""
        accounts.removal_hooks.append(self._account_removed)

    def create(
        self,
        name: str,
        account: str,
        rights: Iterable[TokenRight] = ALL_RIGHTS,
        queues: Sequence[str] | None = None,
        life: int = 0,
    ) -> Completion[str]:
        """Make a token; the outcome is its text, once it is durable and can be used.

        It is for `queues` only (short names, path names, format names), and ends after `life` ms
        (0 for never). Raises MQError: STATUS_INVALID_PARAMETER, STATUS_OBJECT_NAME_COLLISION,
        STATUS_NO_SUCH_USER, MQ_ERROR_INSUFFICIENT_RESOURCES, and those of names.
        """
        token, text = self._new(name, account, frozenset(rights), queues, life)
        with self._store.transaction("create token") as change:
            change.put(Family.META, _key(name), token.encode())
            self._tokens[folded_name(name)] = token
            change.call_when_undone(lambda: self._tokens.pop(folded_name(name), None))
        outcome: Completion[str] = Completion()

        def finish(_: Completion[None]) -> None:
            if self._tokens.get(folded_name(name)) is token:
                self._by_identifier[token.identifier] = token
            outcome.succeed(text)

        change.committed.add_done_callback(finish)
        return outcome

    def _new(
        self,
        name: str,
        account: str,
        rights: frozenset[TokenRight],
        queues: Sequence[str] | None,
        life: int,
    ) -> tuple[Token, str]:
        if not _NAME.fullmatch(name) or not name.isprintable() or name != name.strip():
            raise MQError(NtStatus.STATUS_INVALID_PARAMETER, f"the name {name!r}")
        if not rights or not 0 <= life <= LONGEST_LIFE or len(queues or ()) > MOST_QUEUES:
            raise MQError(NtStatus.STATUS_INVALID_PARAMETER, "rights, queues or time of a token")
        identity = self._accounts.identity(account, "")
        if identity is None:
            raise MQError(NtStatus.STATUS_NO_SUCH_USER, account)
        if folded_name(name) in self._tokens:
            raise MQError(NtStatus.STATUS_OBJECT_NAME_COLLISION, name)
        if len(self._tokens) >= MOST_TOKENS:
            raise MQError(HResult.MQ_ERROR_INSUFFICIENT_RESOURCES, "too many tokens")
        identifier = secrets.token_hex(_IDENTIFIER_BYTES)
        text = f"rpcqm_{identifier}_{secrets.token_urlsafe(_SECRET_BYTES)}"
        now = self._clock.now()
        token = Token(
            name,
            identifier,
            _digest(text),
            identity.name,
            identity.sid,
            rights,
            None if queues is None else tuple(queues),
            None if queues is None else frozenset(map(self._key_of, queues)),
            now,
            now + life if life else 0,
        )
        return token, text

    def delete(self, name: str) -> Completion[None]:
        """Delete a token, which nobody can use from now on; STATUS_OBJECT_NAME_NOT_FOUND."""
        token = self._tokens.get(folded_name(name))
        if token is None:
            raise MQError(NtStatus.STATUS_OBJECT_NAME_NOT_FOUND, name)
        with self._store.transaction("delete token") as change:
            self._remove(change, token)
        return change.committed

    def list(self) -> list[Token]:
        """All tokens, by name."""
        return sorted(self._tokens.values(), key=lambda token: folded_name(token.name))

    def find(self, name: str) -> Token | None:
        """The token of a name, None if there is none."""
        return self._tokens.get(folded_name(name))

    def verify(self, text: str) -> Identity | None:
        """Who shows a token, narrowed to its scope; None for one that is wrong, or has ended.

        It takes as long for a wrong secret as for a right one, and for an unknown token.
        """
        found = _TEXT.fullmatch(text)
        token = self._by_identifier.get(found[1]) if found else None
        expected = _NOBODY if token is None else token.digest
        if not hmac.compare_digest(_digest(text), expected) or token is None:
            return None
        if token.expires and token.expires <= self._clock.now():
            return None
        identity = self._accounts.identity(token.account, "")
        if identity is None or identity.sid != token.sid:
            return None
        return self._bearer(token, identity)

    def _bearer(self, token: Token, identity: Identity) -> Identity:
        """The account as the bearer of a token, made once for each identity of the account."""
        known = self._bearers.get(token.identifier)
        if known is None or known[0] is not identity:
            scope = TokenScope(token.name, token.rights, token.keys)
            known = self._bearers[token.identifier] = identity, identity.narrowed(scope)
        return known[1]

    def _account_removed(self, change: StoreTransaction, sid: str) -> None:
        """The tokens of an account go with it, in the same commit."""
        for token in [each for each in self._tokens.values() if each.sid == sid]:
            self._remove(change, token)

    def queue_renamed(
        self, change: StoreTransaction, queue: Queue, before: str, after: str
    ) -> None:
        """Let tokens for a queue be for it by its new name, in the same commit (G653).

        Those for a queue elsewhere, or for all, stay as they are.
        """
        old, new = self._key_of(before), self._key_of(after)
        for name, token in list(self._tokens.items()):
            if old == new or token.keys is None or token.queues is None or old not in token.keys:
                continue
            queues = [after if self._key_of(each) == old else each for each in token.queues]
            keys = (token.keys - {old}) | {new}
            self._put_instead(change, name, token, replace(token, queues=tuple(queues), keys=keys))

    def _put_instead(self, change: StoreTransaction, name: str, old: Token, new: Token) -> None:
        change.put(Family.META, _key(name), new.encode())
        change.call_when_undone(partial(self._know, name, old))
        self._know(name, new)

    def _know(self, name: str, token: Token) -> None:
        self._tokens[name] = token
        if token.identifier in self._by_identifier:
            self._by_identifier[token.identifier] = token
        self._bearers.pop(token.identifier, None)

    def _remove(self, change: StoreTransaction, token: Token) -> None:
        change.delete(Family.META, _key(token.name))
        del self._tokens[folded_name(token.name)]
        self._by_identifier.pop(token.identifier, None)
        self._bearers.pop(token.identifier, None)


def tokens_of(engine: QueueManagerEngine, accounts: Accounts) -> Tokens:
    """The tokens that the store of a queue manager keeps."""

    def key_of(text: str) -> str:
        return scope_key(text, engine.names, engine.registry)

    tokens = Tokens(engine.store, accounts, engine.clock, key_of)
    engine.renaming.hooks.append(tokens.queue_renamed)
    return tokens


def public_part(text: str) -> str:
    """What of a token's text is no secret, "" for what is no token: that may be anything."""
    found = _PUBLIC.match(text)
    return found[0] if found else ""


def _digest(text: str) -> bytes:
    """SHA-256 is enough: nobody tries 2^256 secrets, however quick each try is."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


def _key(name: str) -> bytes:
    return RECORD_PREFIX + folded_name(name).encode()
