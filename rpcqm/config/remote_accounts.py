"""Who we log on as at other queue managers: a TOML file that nobody else can read.

user = 'EXAMPLE\\reader'
password = "for every queue manager"

[server2]
user = "reader"
password = "for that one"
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from rpcqm.base.files import PermissionsTooWide, read_private
from rpcqm.config.load import MAXIMUM_CONFIGURATION, parse_toml
from rpcqm.config.positions import KeyPath, key_lines
from rpcqm.config.values import ConfigurationError, Mistake

_NAMES = ("user", "password")


@dataclass(frozen=True, slots=True)
class RemoteAccount:
    """An account at another queue manager."""

    user: str
    password: str = field(repr=False)
    domain: str = ""


class RemoteAccounts:
    """Accounts by the names of queue managers, in lower case.

    `default` is for queue managers that the file does not name.
    """

    def __init__(self, accounts: Mapping[str, RemoteAccount] | None = None) -> None:
        self._accounts = dict(accounts or {})

    @property
    def default(self) -> RemoteAccount | None:
        """The account that the file gives no queue manager's name."""
        return self._accounts.get("")

    def find(self, machine: str) -> RemoteAccount | None:
        """The account that the file has for this queue manager, None when it has none."""
        return self._accounts.get(machine.lower())


def load_remote_accounts(path: Path) -> RemoteAccounts:
    """What a file of credentials says; raises ConfigurationError with every mistake.

    One that others can read or write is refused unread.
    """
    text = _private_text(path)
    document = parse_toml(path, text)
    reader = _AccountReader(path, key_lines(text))
    accounts = reader.read(document)
    if reader.mistakes:
        raise ConfigurationError(reader.mistakes)
    return RemoteAccounts(accounts)


def _private_text(path: Path) -> str:
    try:
        octets = read_private(path, MAXIMUM_CONFIGURATION + 1)
        if len(octets) <= MAXIMUM_CONFIGURATION:
            return octets.decode("utf-8")
        mistake = Mistake(str(path), f"is larger than {MAXIMUM_CONFIGURATION:,} octets.")
    except OSError as error:
        mistake = Mistake(str(path), f"cannot be read: {error.strerror}.")
    except UnicodeDecodeError:
        mistake = Mistake(str(path), "is not UTF-8 text.")
    except PermissionsTooWide as error:
        mistake = Mistake(str(path), f"{error}.")
    raise ConfigurationError([mistake])


class _AccountReader:
    """Collects the accounts of a document, and what is wrong with it; no value is ever told."""

    def __init__(self, path: Path, lines: Mapping[KeyPath, int]) -> None:
        self._path = path
        self._lines = lines
        self.mistakes: list[Mistake] = []

    def read(self, document: Mapping[str, object]) -> dict[str, RemoteAccount]:
        general = {key: value for key, value in document.items() if not isinstance(value, dict)}
        found = {"": self._account((), general)} if general else {}
        for name, table in document.items():
            if isinstance(table, dict):
                found[name.lower()] = self._account((name,), table)
        if not document:
            self._complain((), "holds no account; it needs `user` and `password`.")
        return {name: account for name, account in found.items() if account is not None}

    def _account(self, above: KeyPath, table: Mapping[str, object]) -> RemoteAccount | None:
        for key in table:
            if key not in _NAMES:
                self._complain((*above, key), f"there is no setting `{key}` of an account.")
        values = [self._text(above, name, table) for name in _NAMES]
        if None in values:
            return None
        domain, _, user = str(values[0]).rpartition("\\")
        return RemoteAccount(user, str(values[1]), domain)

    def _text(self, above: KeyPath, name: str, table: Mapping[str, object]) -> str | None:
        value = table.get(name)
        if isinstance(value, str) and value:
            return value
        if name not in table:
            whose = f" of [{above[0]}]" if above else ""
            self._complain(above, f"the `{name}`{whose} is missing.")
        else:
            self._complain((*above, name), f"`{name}` is a text that is not empty.")
        return None

    def _complain(self, key: KeyPath, text: str) -> None:
        line = self._lines.get(key)
        where = f"{self._path}:{line}" if line else str(self._path)
        self.mistakes.append(Mistake(where, text))
