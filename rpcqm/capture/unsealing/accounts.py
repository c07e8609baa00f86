"""Accounts whose traffic can be unsealed: passwords, NT hashes, Kerberos keys.

An account is `DOMAIN\\user:password`, `user:password`, or with 32 hexadecimal digits (or
`LM:NT`) in the password's place the NT hash itself; a file has one such line per account, or
lines of an smbpasswd file, or it is a keytab.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from rpcqm.base.errors import DecodeError
from rpcqm.capture.unsealing.keytab import MAGIC, KerberosKey, read_keytab
from rpcqm.client.passwords import nt_hash

_HASHES = re.compile(r"(?:[0-9A-Fa-f]{32}:)?([0-9A-Fa-f]{32})")
_SMBPASSWD = re.compile(r"([^:]+):\d+:(?:[0-9A-FX*]{32}):([0-9A-Fa-f]{32}):\[[A-Z ]*\]:.*")


class AccountError(ValueError):
    """What cannot be read as an account; the text is a sentence and holds no secret."""


@dataclass(frozen=True, slots=True)
class UnsealingAccount:
    """A name with the NT hashes that may be its own; `domain` is empty where none was given.

    `password` is what was typed in the place of one, which may be a hash. What a keytab holds of
    a principal are `keys`, and nothing else.
    """

    domain: str
    name: str
    hashes: tuple[bytes, ...]
    password: str = field(default="", repr=False, compare=False)
    keys: tuple[KerberosKey, ...] = ()


def parse_account(text: str) -> UnsealingAccount:
    """One account; raises AccountError."""
    if stored := _SMBPASSWD.fullmatch(text):
        return UnsealingAccount("", stored[1], (bytes.fromhex(stored[2]),))
    who, colon, password = text.partition(":")
    domain, _, name = who.rpartition("\\")
    if not colon or not name:
        raise AccountError("An account is given as DOMAIN\\user:password.")
    hashes = [nt_hash(password)]
    if found := _HASHES.fullmatch(password):
        hashes.append(bytes.fromhex(found[1]))
    return UnsealingAccount(domain, name, tuple(hashes), password)


def read_accounts(texts: Iterable[str]) -> list[UnsealingAccount]:
    """Accounts as typed and in files, those of keytabs among them.

    Raises AccountError, and OSError for a file that cannot be read.
    """
    accounts: list[UnsealingAccount] = []
    for text in texts:
        path = Path(text)
        if not _exists(path):
            if ":" not in text:
                raise AccountError(f"{text} is no file and no DOMAIN\\user:password.")
            accounts.append(parse_account(text))
        elif (octets := path.read_bytes())[:2] == MAGIC:
            accounts.extend(_principals(octets, path))
        else:
            accounts.extend(_accounts_in(octets, path))
    return accounts


def read_keytabs(paths: Iterable[Path]) -> list[UnsealingAccount]:
    """The principals of keytabs; raises like `read_accounts`."""
    return [account for path in paths for account in _principals(path.read_bytes(), path)]


def _principals(octets: bytes, path: Path) -> list[UnsealingAccount]:
    try:
        keys = read_keytab(octets)
    except DecodeError as error:
        raise AccountError(f"{path}: {error.reason}.") from None
    found = []
    for principal in dict.fromkeys(key.principal for key in keys):
        name, _, realm = principal.rpartition("@")
        own = tuple(key for key in keys if key.principal == principal)
        found.append(UnsealingAccount(realm, name, (), keys=own))
    return found


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):
        # A password may be longer than file names can be, or hold a null character.
        return False


def _accounts_in(octets: bytes, path: Path) -> list[UnsealingAccount]:
    try:
        lines = octets.decode().splitlines()
    except UnicodeDecodeError:
        raise AccountError(f"{path} is neither text nor a keytab.") from None
    found = []
    for number, line in enumerate(lines, 1):
        text = line.strip()
        if text and not text.startswith("#"):
            try:
                found.append(parse_account(text))
            except AccountError as error:
                raise AccountError(f"{path}, line {number}: {error}") from None
    return found
