"""Which settings a running queue manager takes over, and what has to be read for that."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

from rpcqm.binary.connection.listener import ListenerFiles, read_files
from rpcqm.config import Configuration, ConfigurationError
from rpcqm.config.console_section import ConsoleSection
from rpcqm.config.directory import DirectoryFile
from rpcqm.config.schema import settings, value_of
from rpcqm.config.values import Mistake
from rpcqm.rpc.constants import AuthenticationType
from rpcqm.rpc.security.context import AuthenticationError, SecurityProvider
from rpcqm.rpc.security.logon import domain_of
from rpcqm.rpc.security.ntlm import AccountDirectory, NtlmSettings
from rpcqm.rpc.security.providers import security_providers
from rpcqm.service.remote_targets import RemoteTargets

if TYPE_CHECKING:
    from rpcqm.config.srmp_files import SrmpContexts

T = TypeVar("T")

FIXED = (
    *("data_dir", "host", "name", "ready_file"),
    *("epm_port", "rpc_port", "qm2qm_port", "binary_port", "http_port", "https_port"),
    *("dcom_port", "console_port"),
)
"""Settings that hold as long as the process, besides binary.ping, dcom.enabled, console.host,
[otel], [replica] and [directory]: who and where it is, what it listens on, whom it tells and whom
it asks.
"""


@dataclass(frozen=True, slots=True)
class ReadSettings:
    """What a configuration names and what is made of it; the old one is in use until then."""

    directory: DirectoryFile | None
    providers: Mapping[int, SecurityProvider]
    binary: ListenerFiles
    remote_targets: RemoteTargets
    srmp: "SrmpContexts | None"


def read(configuration: Configuration, accounts: AccountDirectory, srmp: bool) -> ReadSettings:
    """Read every file that is named; ConfigurationError with every mistake, of all of them.

    The certificates for messages over HTTP are read if these are served (`srmp`).
    """
    mistakes: list[Mistake] = []

    def attempt(read: Callable[[Configuration], T]) -> T | None:
        try:
            return read(configuration)
        except ConfigurationError as error:
            mistakes.extend(error.mistakes)
            return None

    directory = attempt(directory_file)
    providers = attempt(lambda configuration: _providers(configuration, accounts))
    binary = attempt(_binary)
    targets = attempt(remote_targets)
    contexts = attempt(_srmp) if srmp else None
    if providers is None or binary is None or targets is None or mistakes:
        raise ConfigurationError(mistakes)
    return ReadSettings(directory, providers, binary, targets, contexts)


def directory_file(configuration: Configuration) -> DirectoryFile | None:
    """The directory that a configuration names, if any; raises ConfigurationError."""
    path = configuration.directory_file
    return None if path is None else DirectoryFile(path)


def remote_targets(configuration: Configuration) -> RemoteTargets:
    """The queue managers that a configuration can reach; raises ConfigurationError."""
    return RemoteTargets(configuration.remote, int(configuration.security.minimum_ntlm))


def make_providers(
    configuration: Configuration, accounts: AccountDirectory
) -> dict[int, SecurityProvider]:
    """The ways to log on that a configuration offers; raises AuthenticationError."""
    security = configuration.security
    made = security_providers(
        accounts,
        ntlm=security.ntlm,
        keytab=security.keytab,
        principal=security.principal,
        ntlm_settings=NtlmSettings(configuration.name, int(security.minimum_ntlm)),
    )
    kerberos, domain = made.get(AuthenticationType.RPC_C_AUTHN_GSS_KERBEROS), domain_of(accounts)
    if kerberos is not None and domain is not None:
        domain.add_name(kerberos.principal_name.rpartition("@")[2])
    return made


def _providers(
    configuration: Configuration, accounts: AccountDirectory
) -> dict[int, SecurityProvider]:
    try:
        return make_providers(configuration, accounts)
    except AuthenticationError as error:
        text = f"the keys in {configuration.security.keytab} cannot be used: {error}."
        raise ConfigurationError([Mistake("security.keytab", text)]) from error


def _binary(configuration: Configuration) -> ListenerFiles:
    try:
        return read_files(configuration.binary)
    except OSError as error:
        text = f"cannot read {error.filename}: {error.strerror}."
        raise ConfigurationError([Mistake("binary", text)]) from error
    except ValueError as error:
        raise ConfigurationError([Mistake("binary", f"{error}.")]) from error


def _srmp(configuration: Configuration) -> "SrmpContexts":
    from rpcqm.config.srmp_files import read_srmp_files  # the module ssl takes time to load

    return read_srmp_files(configuration.srmp)


def in_force(old: Configuration, new: Configuration) -> Configuration:
    """What holds when a queue manager that runs with `old` has taken over what it can of `new`.

    A directory can be replaced, but not be taken away while messages rely on it.
    """
    return replace(
        new,
        **{name: getattr(old, name) for name in FIXED},
        directory_file=new.directory_file or old.directory_file,
        binary=replace(new.binary, ping=old.binary.ping),
        console=_console_in_force(old.console, new.console),
        otel=old.otel,
        replica=old.replica,
        directory=old.directory,
        dcom=replace(new.dcom, enabled=old.dcom.enabled),
    )


def _console_in_force(old: ConsoleSection, new: ConsoleSection) -> ConsoleSection:
    """What holds of [console]: TLS begins and ends with the process, other certificates count."""
    held = replace(new, host=old.host)
    if (old.certificate is None) == (new.certificate is None):
        return held
    return replace(held, certificate=old.certificate, key=old.key)


def differing(old: Configuration, new: Configuration) -> list[str]:
    """Keys of the settings that are not the same."""
    return [s.key for s in settings() if value_of(old, s) != value_of(new, s)]
