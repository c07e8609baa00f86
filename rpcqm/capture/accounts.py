"""Accounts whose traffic can be unsealed: NT hashes of passwords.

An account is `DOMAIN\\user:password`, `user:password`, or with 32 hexadecimal digits (or
`LM:NT`) in the password's place the NT hash itself; a file has one such line per account, or
lines of an smbpasswd file.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from rpcqm.client.passwords import nt_hash

_HASHES = re.compile(r"(?:[0-9A-Fa-f]{32}:)?([0-9A-Fa-f]{32})")
_SMBPASSWD = re.compile(r"([^:]+):\d+:(?:[0-9A-FX*]{32}):([0-9A-Fa-f]{32}):\[[A-Z ]*\]:.*")


class AccountError(ValueError):
    """What cannot be read as an account; the text is a sentence and holds no secret."""


@dataclass(frozen=True, slots=True)
class Account:
    """A name with the NT hashes that may be its own; `domain` is empty where none was given.

    `password` is what was typed in the place of one, which may be a hash.
    """

    domain: str
    name: str
    hashes: tuple[bytes, ...]
    password: str = field(default="", repr=False, compare=False)


def parse_account(text: str) -> Account:
    """One account; raises AccountError."""
    if stored := _SMBPASSWD.fullmatch(text):
        return Account("", stored[1], (bytes.fromhex(stored[2]),))
    who, colon, password = text.partition(":")
    domain, _, name = who.rpartition("\\")
    if not colon or not name:
        raise AccountError("An account is given as DOMAIN\\user:password.")
    hashes = [nt_hash(password)]
    if found := _HASHES.fullmatch(password):
        hashes.append(bytes.fromhex(found[1]))
    return Account(domain, name, tuple(hashes), password)


def read_accounts(texts: Iterable[str]) -> tuple[list[Account], list[Path]]:
    """Accounts as typed and in files, and the keytabs among the files.

    Raises AccountError, and OSError for a file that cannot be read.
    """
    accounts: list[Account] = []
    keytabs: list[Path] = []
    for text in texts:
        path = Path(text)
        if ":" in text and not _is_file(path):
            accounts.append(parse_account(text))
        elif path.read_bytes()[:2] == b"\x05\x02":
            keytabs.append(path)
        else:
            accounts.extend(_accounts_in(path))
    return accounts, keytabs


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


def _accounts_in(path: Path) -> list[Account]:
    found = []
    for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
        text = line.strip()
        if text and not text.startswith("#"):
            try:
                found.append(parse_account(text))
            except AccountError as error:
                raise AccountError(f"{path}, line {number}: {error}") from None
    return found
