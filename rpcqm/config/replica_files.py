"""What a replicated log needs besides its settings: the extra, an account, TLS, and programs."""

import shutil
import ssl
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import urlsplit

from rpcqm.base.files import PermissionsTooWide, read_private
from rpcqm.config.load import MAXIMUM_CONFIGURATION
from rpcqm.config.remote_accounts import load_remote_accounts
from rpcqm.config.replica_section import NATS, ReplicaSection, is_loopback
from rpcqm.config.values import ConfigurationError, Mistake
from rpcqm.http.tls import TlsFileError, client_context

_OF_NATS = b"-----BEGIN NATS USER JWT-----"


@dataclass(frozen=True, slots=True)
class ReplicaAccess:
    """How the log's servers let us in, and are sure to be the right ones.

    `credentials` is a `.creds` file of NATS, in place of a user. Without `context` there is no TLS.
    """

    user: str = ""
    password: str = field(default="", repr=False)
    credentials: Path | None = None
    context: ssl.SSLContext | None = None


def is_nats(section: ReplicaSection) -> bool:
    """Whether the log is one of NATS, and not of PostgreSQL."""
    return urlsplit(section.log[0]).scheme in NATS


def check_replica(section: ReplicaSection) -> list[Mistake]:
    """What hinders a log that is configured; nothing is imported for that."""
    if not section.log:
        return []
    mistakes = [*_server_mistakes(section), *_program_mistakes(section)]
    if section.keep_bytes >= section.maximum_bytes:
        text = "is not less than `replica.maximum_bytes`: nothing would ever be given up."
        mistakes.append(Mistake("replica.keep_bytes", text))
    try:
        read_access(section)
    except ConfigurationError as error:
        mistakes += error.mistakes
    return mistakes


def _server_mistakes(section: ReplicaSection) -> list[Mistake]:
    schemes = {urlsplit(each).scheme for each in section.log}
    if len(schemes) > 1:
        text = f"has servers of several kinds: {', '.join(sorted(schemes))}."
        return [Mistake("replica.log", text)]
    mistakes = []
    if find_spec("nats" if is_nats(section) else "asyncpg") is None:
        text = "needs the extra replica, which is not installed: pip install 'rpcqm[replica]'."
        mistakes.append(Mistake("replica.log", text))
    away = [each for each in section.log if not is_loopback(each)]
    if away and "nats" in schemes:
        text = f"needs TLS, because {away[0]} is not on this machine: write tls://."
        mistakes.append(Mistake("replica.log", text))
    if away and section.credentials_file is None:
        text = f"{away[0]} is not on this machine, so `replica.credentials_file` is needed."
        mistakes.append(Mistake("replica.log", text))
    return mistakes


def _program_mistakes(section: ReplicaSection) -> list[Mistake]:
    programs = {"replica.on_promote": section.on_promote, "replica.on_demote": section.on_demote}
    return [
        Mistake(key, f"names {words[0]!r}, which is no program that can be run.")
        for key, words in programs.items()
        if words and shutil.which(words[0]) is None
    ]


def read_access(section: ReplicaSection) -> ReplicaAccess:
    """What the files say; raises ConfigurationError with every mistake, and no secret."""
    mistakes: list[Mistake] = []
    access, context = ReplicaAccess(), None
    try:
        access = _account(section)
    except ConfigurationError as error:
        mistakes += error.mistakes
    try:
        context = _context(section)
    except TlsFileError as error:
        mistakes.append(Mistake("replica.ca_file", f"{error}."))
    if mistakes:
        raise ConfigurationError(mistakes)
    return ReplicaAccess(access.user, access.password, access.credentials, context)


def _context(section: ReplicaSection) -> ssl.SSLContext | None:
    """TLS with verified names, where it is asked for or needed."""
    wanted = section.ca_file is not None or any(
        urlsplit(each).scheme == "tls" or not is_loopback(each) for each in section.log
    )
    return client_context(section.ca_file) if wanted else None


def _account(section: ReplicaSection) -> ReplicaAccess:
    path = section.credentials_file
    if path is None:
        return ReplicaAccess()
    if is_nats(section) and _is_of_nats(path):
        return ReplicaAccess(credentials=path)
    account = load_remote_accounts(path).default
    if account is None:
        text = "holds no account; it needs `user` and `password`."
        raise ConfigurationError([Mistake(str(path), text)])
    return ReplicaAccess(account.user, account.password)


def _is_of_nats(path: Path) -> bool:
    """Whether a file is one that NATS' own tools write; what else it is, others say."""
    try:
        return _OF_NATS in read_private(path, MAXIMUM_CONFIGURATION)
    except (OSError, PermissionsTooWide):
        return False
