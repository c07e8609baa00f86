"""Accounts that callers log on with, and who a local caller is.

The NT hashes stand in one smbpasswd-format file, readable by its owner only; names, relative
identifiers and groups are records of the store. An account exists once both have it. In a cluster
the hashes are records, too: the node that takes over makes its file of them (G740).
"""

import hashlib
import hmac
import json
import os
import pwd
import re
import secrets
import struct
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import rpcqm.rpc.security.logon_throttle
from rpcqm.base.clock import Clock, SystemClock
from rpcqm.base.completion import Completion
from rpcqm.base.errors import DecodeError, HResult, MQError, NtStatus
from rpcqm.base.identity import (
    ADMINISTRATOR_IDENTIFIER,
    ANONYMOUS,
    EVERYONE,
    Identity,
    Validity,
    authenticated,
    folded_name,
)
from rpcqm.codec.security.permissions import WELL_KNOWN
from rpcqm.qm.sender_rights import identity_of
from rpcqm.service.domain_accounts import DomainAccounts
from rpcqm.store.backup import ACCOUNTS_NAME
from rpcqm.store.records import Family
from rpcqm.store.store import Store
from rpcqm.store.transaction import StoreTransaction

MACHINE_SID_KEY = b"machine SID"
NEXT_IDENTIFIER_KEY = b"next account identifier"
RECORD_PREFIX = b"account:"
PASSWORD_PREFIX = b"password:"
"""Of records that only a cluster has."""

FIRST_IDENTIFIER = 1000
"""Relative identifiers below are well-known ones ([MS-DTYP] 2.4.2.4)."""

USERS = "users"
GROUPS = {
    "administrators": "S-1-5-32-544",
    USERS: "S-1-5-32-545",
    "guests": "S-1-5-32-546",
}
OBSERVERS = "observers"
"""The group of read-only accounts. Descriptors do not know it: they are asked as for an
administrator, and no more is granted than looking (G654)."""

_NAME = re.compile(r'[^\x00-\x1f\x7f"/\\\[\]:;|=,+*?<>@]{1,20}')
_LINE = re.compile(
    r"^(?P<name>[^:\n]+):\d+:[0-9A-F]{32}:(?P<nt>[0-9A-F]{32}):\[.*\]:LCT-(?P<changed>[0-9A-F]{8})$",
    re.MULTILINE,
)
_NO_LM_HASH = "0" * 32
_NO_HASH = bytes(16)
_PASSWORD = struct.Struct(">16sQ")


@dataclass(frozen=True, slots=True)
class Account:
    """What an administrator sees of an account."""

    name: str
    sid: str
    groups: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Record:
    """An account as the store keeps it."""

    name: str
    relative_identifier: int
    groups: tuple[str, ...]

    @classmethod
    def decode(cls, value: bytes) -> "_Record":
        """Read a record; raises DecodeError if it is damaged."""
        try:
            fields = json.loads(value)
            groups = tuple(map(str, fields["groups"]))
            return cls(str(fields["name"]), int(fields["rid"]), groups)
        except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
            raise DecodeError(f"damaged record of an account: {error!r}") from error

    def encode(self) -> bytes:
        fields = {"name": self.name, "rid": self.relative_identifier, "groups": self.groups}
        return json.dumps(fields).encode()


@dataclass(frozen=True, slots=True)
class _Credential:
    """What a logon is checked against; `changed` is in seconds since 1970."""

    nt_hash: bytes
    changed: int

    @classmethod
    def decode(cls, value: bytes) -> "_Credential":
        """Read a record of a cluster; raises DecodeError if it is damaged."""
        if len(value) != _PASSWORD.size:
            raise DecodeError("damaged record of a password")
        return cls(*_PASSWORD.unpack(value))

    def encode(self) -> bytes:
        return _PASSWORD.pack(self.nt_hash, self.changed)


class Accounts:
    """The accounts of one queue manager; names are compared without regard to case.

    `own_uid` is the Unix user that the service runs as.
    """

    def __init__(
        self,
        store: Store,
        directory: Path,
        *,
        clock: Clock | None = None,
        own_uid: int | None = None,
    ) -> None:
        self._store = store
        self._clock = clock or SystemClock()
        self.removal_hooks: list[Callable[[StoreTransaction, str], None]] = []
        """Told of the SID of an account that is removed, in the commit of that."""
        self.ended_hooks: list[Callable[[str], None]] = []
        """Told of the SID of an account that has gone, durably, or has another password: what is
        open of it ends (G403)."""
        self.domain: DomainAccounts | None = None
        """The accounts of a domain beside these, if they count here."""
        self.throttle = rpcqm.rpc.security.logon_throttle.GuessThrottle(self._clock)
        self._own_uid = os.getuid() if own_uid is None else own_uid
        self.user_file = directory / ACCOUNTS_NAME
        self._records = {
            folded_name(record.name): record
            for _, value in store.records(Family.META, RECORD_PREFIX)
            for record in [_Record.decode(value)]
        }
        self._by_number = {each.relative_identifier: each for each in self._records.values()}
        self._identities: dict[str, Identity] = {}
        self._credentials = _read_credentials(self.user_file)
        self._next_identifier = self._number(NEXT_IDENTIFIER_KEY, FIRST_IDENTIFIER)
        self.machine_sid = self._machine_sid()
        if store.is_replicated:
            self._share_credentials()
        else:
            self._leave_cluster()

    def add(self, name: str, nt_hash: bytes, groups: Sequence[str] = ()) -> Completion[str]:
        """Create an account; the outcome is its SID, once it is durable.

        Raises MQError with STATUS_INVALID_ACCOUNT_NAME, STATUS_USER_EXISTS or
        STATUS_NO_SUCH_ALIAS.
        """
        if not _NAME.fullmatch(name) or not name.isprintable() or name != name.strip(" ."):
            raise MQError(NtStatus.STATUS_INVALID_ACCOUNT_NAME, name)
        if _read(name) in WELL_KNOWN or _read(name).startswith("s-1-"):
            raise MQError(NtStatus.STATUS_INVALID_ACCOUNT_NAME, f"{name} means others")
        if any(_read(each.name) == _read(name) for each in self._records.values()):
            raise MQError(NtStatus.STATUS_USER_EXISTS, name)
        record = _Record(name, self._next_identifier, _known_groups(groups))
        credential = self._credential(nt_hash)
        with self._store.transaction("add account") as transaction:
            following = str(record.relative_identifier + 1).encode()
            transaction.put(Family.META, NEXT_IDENTIFIER_KEY, following)
            transaction.put(Family.META, _key(name), record.encode())
            self._share(transaction, name, credential)
        self._next_identifier += 1
        self._records[folded_name(name)] = record
        self._by_number[record.relative_identifier] = record
        return self._when_durable(transaction.committed, name, credential, self._sid(record))

    def read_again(self) -> None:
        """Take over passwords from the file as it is now; OSError, UnicodeDecodeError."""
        self.user_file.stat()
        before, self._credentials = self._credentials, _read_credentials(self.user_file)
        others = [each for each in self._records if before.get(each) != self._credentials.get(each)]
        if self._store.is_replicated and others:
            with self._store.transaction("passwords read again") as change:
                for name in others:
                    self._share(change, name, self._credentials.get(name))
        for name, record in self._records.items():
            if name in others:
                self._end(record)
                self._tell_ended(record)

    def set_password(self, name: str, nt_hash: bytes) -> Completion[None]:
        """Give an account another password; the outcome comes once it is durable.

        It counts at once, in a cluster once the log has it. Raises MQError with
        STATUS_NO_SUCH_USER.
        """
        record, credential = self._existing(name), self._credential(nt_hash)
        if self._store.is_replicated:
            return self._set_in_cluster(record, credential)
        self._take_password(record, credential)
        outcome: Completion[None] = Completion()
        outcome.succeed(None)
        return outcome

    def _set_in_cluster(self, record: _Record, credential: _Credential) -> Completion[None]:
        with self._store.transaction("set password") as change:
            self._share(change, record.name, credential)
        outcome: Completion[None] = Completion()

        def finish(_: Completion[None]) -> None:
            try:
                self._take_password(record, credential)
            except MQError as error:  # the next start writes the file anew
                outcome.fail(error)
            else:
                outcome.succeed(None)

        change.committed.add_done_callback(finish)
        return outcome

    def _take_password(self, record: _Record, credential: _Credential) -> None:
        self._credentials[folded_name(record.name)] = credential
        try:
            self._write_credentials()
        finally:  # it counts from now on, whether or not it is kept
            self._end(record)
            self._tell_ended(record)

    def remove(self, name: str) -> Completion[None]:
        """Delete an account, which cannot log on from now on; MQError with STATUS_NO_SUCH_USER."""
        record = self._existing(name)
        self._credentials.pop(folded_name(record.name), None)
        self._write_credentials()
        with self._store.transaction("remove account") as transaction:
            transaction.delete(Family.META, _key(name))
            self._share(transaction, name, None)
            for hook in self.removal_hooks:
                hook(transaction, self._sid(record))
        del self._records[folded_name(record.name)]
        del self._by_number[record.relative_identifier]
        self._end(record)
        transaction.committed.add_done_callback(lambda _: self._tell_ended(record))
        return transaction.committed

    def _end(self, record: _Record) -> None:
        """Nobody who has proved to be an account is it any more; who proves it anew is."""
        known = self._identities.pop(record.name, None)
        if known is not None:
            known.validity.ended = True

    def _tell_ended(self, record: _Record) -> None:
        for hook in self.ended_hooks:
            hook(self._sid(record))

    def list(self) -> list[Account]:
        """All accounts, by name."""
        records = sorted(self._records.values(), key=lambda record: folded_name(record.name))
        return [Account(record.name, self._sid(record), record.groups) for record in records]

    def has_password(self, name: str, nt_hash: bytes) -> bool:
        """Whether an account has that password; it takes as long for one that is not there."""
        credential = self._credentials.get(folded_name(name))
        expected = _NO_HASH if credential is None else credential.nt_hash
        return hmac.compare_digest(expected, nt_hash) and credential is not None

    def identity(self, name: str, domain: str) -> Identity | None:
        """Who `name` is once it has proved it; None when there is no such account.

        Outside a domain a caller may claim any: its own computer's, ours, or none. An account of
        the domain has no password here, so that nobody is one by a local name (G773).
        """
        if self.domain is not None and self.domain.is_named(domain):
            return None
        record = self._records.get(folded_name(name))
        return None if record is None else self._identity_of(record)

    def identity_of_sid(self, sid: str) -> Identity:
        """Who has a SID now: Anonymous if the account that had it is there no more.

        SIDs of elsewhere, such as a directory has of its users, stand for themselves.
        """
        if sid == EVERYONE:
            return Identity("Everyone", EVERYONE)
        machine, _, number = sid.rpartition("-")
        if machine != self.machine_sid:
            domain = self.domain
            known = domain is not None and domain.is_of(sid)
            return domain.identity_of_sid(sid) if domain is not None and known else identity_of(sid)
        if number == str(ADMINISTRATOR_IDENTIFIER):
            return authenticated("Administrator", sid, *_group_sids(["administrators", USERS]))
        record = self._by_number.get(int(number))
        return ANONYMOUS if record is None else self._identity_of(record)

    def signer_of(self, sid: str) -> Identity:
        """Who has signed with a certificate of a SID; Anonymous if its account has ended."""
        if self.domain is None or not self.domain.is_of(sid):
            return identity_of(sid)
        return self.domain.signer_of(sid)

    def standing(self, identity: Identity) -> tuple[Identity, bytes] | None:
        """Who somebody is now that has logged on, None if the account is there no more.

        The octets are others once its password has changed; who is known by the local socket alone
        has none.
        """
        if identity.sid == f"{self.machine_sid}-{ADMINISTRATOR_IDENTIFIER}":
            return identity, b""
        if self.domain is not None and self.domain.is_of(identity.sid):
            return None if identity.has_ended else (identity, b"")
        name = folded_name(identity.name)
        record, credential = self._records.get(name), self._credentials.get(name)
        if record is None or self._sid(record) != identity.sid:
            return None
        stamp = b"" if credential is None else f"{credential.changed}:".encode()
        known = b"" if credential is None else credential.nt_hash
        return self._identity_of(record), hashlib.sha256(stamp + known).digest()

    def local_identity(self, uid: int) -> Identity:
        """Who a process of this machine is.

        Root and the service's own user are administrators; others are the account of exactly
        the same name, or nobody in particular.
        """
        name = _unix_name(uid)
        if uid in (0, self._own_uid):
            administrator = f"{self.machine_sid}-{ADMINISTRATOR_IDENTIFIER}"
            return authenticated(name, administrator, *_group_sids(["administrators", USERS]))
        record = self._records.get(folded_name(name))
        if record is not None and record.name == name:
            return self._identity_of(record)
        return Identity(name, EVERYONE)

    def _identity_of(self, record: _Record) -> Identity:
        """The identity of an account, which is made once: programs log on for each request."""
        known = self._identities.get(record.name)
        if known is None:
            sids, looks = _group_sids(record.groups), OBSERVERS in record.groups
            known = authenticated(
                record.name, self._sid(record), *sids, validity=Validity(), read_only=looks
            )
            self._identities[record.name] = known
        return known

    def _sid(self, record: _Record) -> str:
        return f"{self.machine_sid}-{record.relative_identifier}"

    def _existing(self, name: str) -> _Record:
        record = self._records.get(folded_name(name))
        if record is None:
            raise MQError(NtStatus.STATUS_NO_SUCH_USER, name)
        return record

    def _when_durable(
        self, committed: Completion[None], name: str, credential: _Credential, sid: str
    ) -> Completion[str]:
        """Let the account log on once its record cannot be lost any more."""
        outcome: Completion[str] = Completion()

        def finish(done: Completion[None]) -> None:
            if done.error is not None:
                outcome.fail(done.error)
                return
            self._credentials[folded_name(name)] = credential
            try:
                self._write_credentials()
            except MQError as error:
                outcome.fail(error)
            else:
                outcome.succeed(sid)

        committed.add_done_callback(finish)
        return outcome

    def _credential(self, nt_hash: bytes) -> _Credential:
        return _Credential(nt_hash, self._clock.now() // 1000)

    def _machine_sid(self) -> str:
        """S-1-5-21 and three random numbers, drawn once ([MS-DTYP] 2.4.2.4)."""
        known = self._store.get(Family.META, MACHINE_SID_KEY)
        if known is not None:
            return known.decode("ascii", "replace")
        drawn = "S-1-5-21-" + "-".join(str(secrets.randbits(32)) for _ in range(3))
        with self._store.transaction("machine SID") as transaction:
            transaction.put(Family.META, MACHINE_SID_KEY, drawn.encode())
        return drawn

    def _number(self, key: bytes, default: int) -> int:
        value = self._store.get(Family.META, key)
        try:
            return default if value is None else int(value)
        except ValueError as error:
            raise DecodeError(f"damaged record of a number: {error}") from error

    def _share(self, change: StoreTransaction, name: str, credential: _Credential | None) -> None:
        """Let the nodes of a cluster have a password, or have it no more (None)."""
        if not self._store.is_replicated:
            return
        key = PASSWORD_PREFIX + folded_name(name).encode()
        if credential is None:
            change.delete(Family.META, key)
        else:
            change.put(Family.META, key, credential.encode())

    def _shared(self) -> dict[str, _Credential]:
        """The passwords that nodes of a cluster have, by folded name."""
        return {
            key[len(PASSWORD_PREFIX) :].decode(): _Credential.decode(value)
            for key, value in self._store.records(Family.META, PASSWORD_PREFIX)
        }

    def _share_credentials(self) -> None:
        """Take the passwords of the cluster, and give it those that it has never had."""
        shared = self._shared()
        missing = self._credentials.keys() & self._records.keys() - shared.keys()
        if missing:
            with self._store.transaction("share passwords") as change:
                for name in sorted(missing):
                    self._share(change, name, self._credentials[name])
        self._credentials |= shared
        self._write_credentials()

    def _leave_cluster(self) -> None:
        """Go on with the passwords of a cluster from which this was restored, if it was.

        The file may be that of a standby, which is older; a later one was written since.
        """
        shared = self._shared()
        for name, credential in shared.items():
            here = self._credentials.get(name, credential)
            self._credentials[name] = max(credential, here, key=lambda each: each.changed)
        self._write_credentials()
        if shared:
            with self._store.transaction("passwords outside of a cluster") as change:
                for name in shared:
                    change.delete(Family.META, PASSWORD_PREFIX + name.encode())

    def _write_credentials(self) -> None:
        """Replace the file as a whole; MQError when the disk refuses."""
        lines = [
            _line(record, self._credentials[name])
            for name, record in self._records.items()
            if name in self._credentials
        ]
        try:
            _replace_private(self.user_file, "".join(lines))
        except OSError as error:
            raise MQError(HResult.MQ_ERROR_INSUFFICIENT_RESOURCES, str(error)) from error


def _key(name: str) -> bytes:
    return RECORD_PREFIX + folded_name(name).encode()


def _read(name: str) -> str:
    """A name as people read it: the same for those that are written alike (G320)."""
    return folded_name(unicodedata.normalize("NFKC", folded_name(name)))


def _known_groups(groups: Iterable[str]) -> tuple[str, ...]:
    """Groups under their own names; every account but a guest is among the users."""
    names = list(dict.fromkeys(group.casefold() for group in groups))
    for name in names:
        if name not in GROUPS and name != OBSERVERS:
            raise MQError(NtStatus.STATUS_NO_SUCH_ALIAS, name)
    if OBSERVERS in names:
        if len(names) > 1:
            raise MQError(NtStatus.STATUS_INVALID_PARAMETER, f"{OBSERVERS} is the only group")
        return (OBSERVERS,)
    if USERS not in names and "guests" not in names:
        names.append(USERS)
    return tuple(names)


def _group_sids(groups: Iterable[str]) -> list[str]:
    seen = ["administrators" if group == OBSERVERS else group for group in groups]
    return [GROUPS[group] for group in seen if group in GROUPS]


def _unix_name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def _line(record: _Record, credential: _Credential) -> str:
    """One line of smbpasswd, in six fields: what pyspnego takes."""
    hashes = f"{_NO_LM_HASH}:{credential.nt_hash.hex().upper()}"
    kind = f"[U          ]:LCT-{credential.changed:08X}"
    return f"{record.name}:{record.relative_identifier}:{hashes}:{kind}\n"


def _read_credentials(path: Path) -> dict[str, _Credential]:
    """Credentials by folded name; lines of another form are left out."""
    try:
        text = path.read_bytes().decode("utf-8")
    except FileNotFoundError:
        return {}
    return {
        folded_name(match["name"]): _Credential(
            bytes.fromhex(match["nt"]), int(match["changed"], 16)
        )
        for match in _LINE.finditer(text)
    }


def _replace_private(path: Path, text: str) -> None:
    """Write a file that only its owner can read, whole or not at all."""
    draft = path.with_name(path.name + ".new")
    draft.unlink(missing_ok=True)
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)
