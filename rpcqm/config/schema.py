"""The names, types, defaults and bounds of everything that can be set.

A setting has the same name in the configuration file, in the environment (RPCQM_ and the name
in capitals) and, where `rpcqm serve` has an option for it, on the command line.
"""

import dataclasses
import os
import socket
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache, reduce
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, get_args, get_origin

from rpcqm.codec.names.path_name import COMPUTER_NAME
from rpcqm.config.about import PORTS, About
from rpcqm.config.aliases import check_alias
from rpcqm.config.console_section import ConsoleSection
from rpcqm.config.dcom_section import DcomSection
from rpcqm.config.directory_section import DirectorySection
from rpcqm.config.limits_section import LimitsSection
from rpcqm.config.metrics_section import MetricsSection
from rpcqm.config.otel_section import OtelSection
from rpcqm.config.replica_section import ReplicaSection
from rpcqm.config.srmp_section import SrmpSection
from rpcqm.config.triggers_section import TriggersSection

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

_PEER = r"[^\s=,]+=(\[[0-9A-Fa-f:.]+\]|[^\s=,:\[\]]+)(:\d{1,5})?"


def own_name() -> str:
    """The computer's name for its peers: the part of the host name before the first dot."""
    return socket.gethostname().split(".")[0]


def state_directory() -> Path:
    """Where a service manager wants the data, else `var` in the current directory."""
    return Path(os.environ.get("STATE_DIRECTORY", "").split(":")[0] or "var")


@dataclass(frozen=True, slots=True)
class SecuritySection:
    """Who is let in; the switches are those of Windows, off by default as there."""

    ntlm: Annotated[bool, About("Callers may authenticate by NTLM.")] = True
    minimum_ntlm: Annotated[
        str,
        About(
            "Bits that an NTLM key must have, of callers and of servers that we log on to.",
            choices=("128", "56"),
            opens="NTLM keys of 56 bits, which can be found by trying all of them, are accepted.",
        ),
    ] = "128"
    keytab: Annotated[
        Path | None,
        About("Keys for Kerberos, which callers may use if there are any.", default="none"),
    ] = None
    principal: Annotated[
        str,
        About("The Kerberos name to serve, such as `host/server@REALM`.", default="all in keytab"),
    ] = ""
    allow_nonauthenticated_rpc: Annotated[
        bool,
        About(
            "RemoteRead serves callers that do not authenticate ([MS-MQRR] <19>).",
            opens="Callers who have not logged on read queues over the network, with the rights "
            "that a queue grants to Anonymous; those who have logged on need not encrypt.",
            registry=r"Security\AllowNonauthenticatedRpc",
        ),
    ] = False
    new_remote_read_server_deny_workgroup_client: Annotated[
        bool, About("The switch above holds for callers outside a domain only.")
    ] = False
    new_remote_read_server_allow_none_security_client: Annotated[
        bool,
        About(
            "Callers without authentication may read queues that Anonymous may read.",
            opens="Callers who have not logged on read those queues over the network that "
            "Anonymous may peek at; there those who have logged on need not encrypt.",
            registry=r"Security\NewRemoteReadServerAllowNoneSecurityClient",
        ),
    ] = False
    debug_rpc: Annotated[
        bool,
        About(
            "RemoteRead takes signed calls (PKT_INTEGRITY) as well as encrypted ones.",
            opens="Calls are signed but not encrypted: others on the network can read them.",
            registry=r"Security\DebugRpc",
        ),
    ] = False
    allow_unprotected_rpc: Annotated[
        bool,
        About(
            "qmcomm, qmcomm2 and qmmgmt take calls of every authentication level.",
            opens="Dependent clients and tools for administration that neither log on nor "
            "encrypt: others read their calls and change them, and callers who have not logged "
            "on are served with the rights of Anonymous.",
        ),
    ] = False
    supporting_server: Annotated[
        bool,
        About(
            "Dependent clients may use qmcomm and qmcomm2 over TCP.",
            opens="Callers over the network send, and create, change and delete queues, as far as "
            "their rights go.",
        ),
    ] = False
    workgroup_default_security: Annotated[
        bool,
        About(
            "New queues get the permissions of a workgroup ([MS-MQDMPR] 3.1.7.1.3.1).",
            opens="Everybody who logs on has every right on new queues, and may delete them or "
            "shut others out; unsigned messages are refused there until Anonymous is granted send.",
        ),
    ] = False
    send_insecure_nacks: Annotated[
        bool,
        About(
            "Senders elsewhere are told, if they ask, that a queue does not exist, that they may "
            "not write to it, or that their signature or encryption is not good. Off, they hear "
            "nothing, and only the log here and the dead-letter queue here tell.",
            opens="Strangers learn which queues exist, and which of them refuse their messages.",
            registry=r"Security\PermitInsecureNacks",
        ),
    ] = False
    hardened_security: Annotated[
        bool, About("Only HTTP and HTTPS carry messages to and from other computers.")
    ] = False


@dataclass(frozen=True, slots=True)
class StorageSection:
    """Bounds of the store."""

    reserve: Annotated[
        int,
        About(
            "Free disk space below which new messages are refused (MiB).", (1, 1 << 30), unit="MiB"
        ),
    ] = 256
    ballast: Annotated[
        int,
        About(
            "A file that is given up when the disk is full, so that messages can be removed (MiB); "
            "0: none.",
            (0, 1 << 20),
            unit="MiB",
        ),
    ] = 64
    express_memory: Annotated[
        int,
        About(
            "Memory for bodies of express messages; more goes to disk (MiB).",
            (1, 1 << 20),
            unit="MiB",
        ),
    ] = 256
    trail_days: Annotated[
        int, About("Days for which event trails of messages are kept.", (1, 36_500), unit="d")
    ] = 7
    backup_directory: Annotated[
        Path | None,
        About(
            "Directory below which `/api/v1` may make backups; without it, it makes none.",
            default="none",
        ),
    ] = None
    quota: Annotated[
        int, About("What all messages together may take (KiB).", (1, 0xFFFF_FFFF), unit="KiB")
    ] = 1 << 20
    queue_quota: Annotated[
        int,
        About(
            "What a new queue may take (KiB); 0: a quarter of all, 4294967295: no bound.",
            (0, 0xFFFF_FFFF),
            unit="KiB",
        ),
    ] = 0

    @property
    def quota_of_new_queues(self) -> int:
        """`queue_quota` in KiB; 0xFFFFFFFF stands for no quota."""
        return self.queue_quota or max(self.quota // 4, 1)


@dataclass(frozen=True, slots=True)
class LoggingSection:
    """What is logged, and how; logs go to standard error."""

    level: Annotated[
        str,
        About(
            "The least severe event that is logged.", choices=("debug", "info", "warning", "error")
        ),
    ] = "info"
    format: Annotated[
        str,
        About(
            "Text for people, JSON for programs; auto is text on a terminal.",
            choices=("auto", "text", "json"),
        ),
    ] = "auto"


@dataclass(frozen=True, slots=True)
class BinarySection:
    """Messages to and from other queue managers."""

    peers: Annotated[
        str,
        About(
            "Addresses of other queue managers, used instead of name resolution: NAME=HOST[:PORT], "
            "separated by commas. NAME may be the GUID of a queue manager. The same name may stand "
            "there several times, once for each address to try.",
            default="none",
            form=r"[^\s=,]+=[^\s=,]+(, ?[^\s=,]+=[^\s=,]+)*",
        ),
    ] = ""
    signing_key: Annotated[
        str,
        About(
            "RSA key (PEM file) that signs what is sent from here, except over HTTP.",
            default="none",
        ),
    ] = ""
    signing_certificate: Annotated[
        str, About("Certificate (PEM file) of that key.", default="none")
    ] = ""
    encryption_key: Annotated[
        str, About("RSA key (PEM file) that decrypts bodies sent to here.", default="none")
    ] = ""
    unsigned_senders: Annotated[
        str,
        About(
            "Who has sent a message without a signature: Anonymous, or the account that it claims "
            "to come from; auto believes claims only where there is a directory.",
            choices=("auto", "anonymous", "claimed"),
            opens="Unsigned messages count as sent by the account that they claim. Everybody who "
            "reaches port 1801 can claim any account, so that permissions keep nobody out.",
            opens_at="claimed",
        ),
    ] = "auto"
    ping: Annotated[
        bool, About("Ask with a datagram before connecting, and answer such questions (UDP 3527).")
    ] = False
    retry_milliseconds: Annotated[
        int,
        About(
            "Time to the next attempt when connecting fails or a session ends.",
            (1, 86_400_000),
            unit="ms",
        ),
    ] = 5000
    back_off_milliseconds: Annotated[
        int,
        About(
            "How long an address is kept out that has sent bad packets three times in a minute.",
            (0, 86_400_000),
            unit="ms",
        ),
    ] = 5000


@dataclass(frozen=True, slots=True)
class RemoteSection:
    """Queues of other queue managers that dependent clients read through us."""

    credentials_file: Annotated[
        Path | None,
        About(
            "File (mode 0600) with the accounts that we log on with at other queue managers.",
            default="none",
        ),
    ] = None
    default_account: Annotated[
        bool,
        About(
            "The account that the file gives no name is sent to every host that a client names.",
            opens="Clients choose the hosts that the queue manager logs on to; such a host can try "
            "passwords against what it is sent, or log on elsewhere with it.",
        ),
    ] = False
    kerberos: Annotated[
        bool, About("We log on there by Kerberos first, with the tickets of our own cache.")
    ] = False
    allow_unauthenticated: Annotated[
        bool,
        About(
            "We read without logging on, unencrypted, where nothing else is set.",
            opens="What is read elsewhere for clients crosses the network in clear, and the other "
            "side may be anybody.",
        ),
    ] = False
    peers: Annotated[
        str,
        About(
            "Addresses of the endpoint mappers of other queue managers, used instead of name "
            "resolution: NAME=HOST[:PORT], separated by commas.",
            default="none",
            form=rf"{_PEER}(, ?{_PEER})*",
        ),
    ] = ""


@dataclass(frozen=True, slots=True)
class Configuration:
    """Everything that can be set about one queue manager."""

    data_dir: Annotated[
        Path,
        About("Directory of messages, queues and accounts.", default="`$STATE_DIRECTORY` or `var`"),
    ] = field(default_factory=state_directory)
    host: Annotated[str, About("Address to listen on; `0.0.0.0` is every IPv4 address.")] = (
        "127.0.0.1"
    )
    name: Annotated[
        str,
        About(
            "The computer's name, as it stands in path names.",
            default="the host's name",
            form=COMPUTER_NAME,
        ),
    ] = field(default_factory=own_name)
    aliases: Annotated[
        tuple[str, ...],
        About(
            "Further names and addresses of this computer, by which others reach it and name its "
            "queues: `HOST`, or `HOST:PORT` for URLs with a port that is mapped to here.",
            default="none",
            check=check_alias,
        ),
    ] = ()
    epm_port: Annotated[int, About("The endpoint mapper; Windows clients ask at 135.", PORTS)] = (
        1135
    )
    rpc_port: Annotated[
        int | None,
        About("The RPC interfaces.", PORTS, default="2103, else the next free of 2114, 2125 …"),
    ] = None
    qm2qm_port: Annotated[
        int | None,
        About(
            "The RPC interfaces, for peers that look for qm2qm.",
            PORTS,
            default="2105, else the next free of 2116, 2127 …",
        ),
    ] = None
    binary_port: Annotated[
        int | None,
        About(
            "Messages of other queue managers; Windows sends to 1801 only.",
            PORTS,
            default="1801, else the next free of 1812, 1823 …",
        ),
    ] = None
    dcom_port: Annotated[
        int | None,
        About(
            "MSMQ's COM objects, if `dcom.enabled`.",
            PORTS,
            default="2107, else the next free of 2118, 2129 …",
        ),
    ] = None
    console_port: Annotated[
        int | None,
        About(
            "The interface for programs, at `console.host`.",
            PORTS,
            default="15680, else the next free of 15691, 15702 …",
        ),
    ] = None
    http_port: Annotated[
        int, About("Messages over HTTP, both ways; Windows sends to 80.", PORTS)
    ] = -1
    https_port: Annotated[
        int,
        About("The same over TLS, with `srmp.certificate` and `srmp.key`; usually 443.", PORTS),
    ] = -1
    ready_file: Annotated[
        Path | None, About("File to write once every port listens.", default="none")
    ] = None
    directory_file: Annotated[
        Path | None,
        About(
            "File that says what other queue managers, sites and public queues there are.",
            default="none",
        ),
    ] = None
    security: SecuritySection = field(default_factory=SecuritySection)
    limits: LimitsSection = field(default_factory=LimitsSection)
    storage: StorageSection = field(default_factory=StorageSection)
    logging: LoggingSection = field(default_factory=LoggingSection)
    binary: BinarySection = field(default_factory=BinarySection)
    remote: RemoteSection = field(default_factory=RemoteSection)
    srmp: SrmpSection = field(default_factory=SrmpSection)
    dcom: DcomSection = field(default_factory=DcomSection)
    console: ConsoleSection = field(default_factory=ConsoleSection)
    metrics: MetricsSection = field(default_factory=MetricsSection)
    otel: OtelSection = field(default_factory=OtelSection)
    triggers: TriggersSection = field(default_factory=TriggersSection)
    replica: ReplicaSection = field(default_factory=ReplicaSection)
    directory: DirectorySection = field(default_factory=DirectorySection)


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting: its place, its type, its default in words, and its description.

    `item` is the type of the values of a list; lists can be set in files only.
    """

    path: tuple[str, ...]
    kind: type
    default: str
    about: About
    item: type | None = None

    @property
    def key(self) -> str:
        """Its name with that of its table, for example `security.debug_rpc`."""
        return ".".join(self.path)

    @property
    def variable(self) -> str:
        """Its name in the environment."""
        return "RPCQM_" + "_".join(self.path).upper()


def tables() -> dict[str, type["DataclassInstance"]]:
    """Tables of the configuration file, by name."""
    return {
        "security": SecuritySection,
        "limits": LimitsSection,
        "storage": StorageSection,
        "logging": LoggingSection,
        "binary": BinarySection,
        "remote": RemoteSection,
        "srmp": SrmpSection,
        "dcom": DcomSection,
        "console": ConsoleSection,
        "metrics": MetricsSection,
        "otel": OtelSection,
        "triggers": TriggersSection,
        "replica": ReplicaSection,
        "directory": DirectorySection,
    }


@cache
def settings() -> tuple[Setting, ...]:
    """Every setting, in the order of the documentation."""
    sections = (_settings_of(table, name) for name, table in tables().items())
    return (*_settings_of(Configuration), *chain.from_iterable(sections))


def _settings_of(table: type["DataclassInstance"], *above: str) -> Iterator[Setting]:
    for entry in dataclasses.fields(table):
        if get_args(entry.type):
            declared, about = get_args(entry.type)
            kind = next(iter(get_args(declared)), declared)  # X of X | None, or of tuple[X, ...]
            default = about.default or str(entry.default)
            if kind is bool:
                default = default.lower()
            place = (*above, entry.name)
            if get_origin(declared) is tuple:
                yield Setting(place, tuple, default, about, kind)
            else:
                yield Setting(place, kind, default, about)


def switches() -> Iterator[Setting]:
    """Every setting that lowers safety, in the order of the documentation."""
    return (setting for setting in settings() if setting.about.opens)


def switches_on(configuration: Configuration) -> list[Setting]:
    """The switches that open something: not at their defaults, or at their `opens_at`."""
    usual = Configuration()

    def is_on(setting: Setting) -> bool:
        value, opens_at = value_of(configuration, setting), setting.about.opens_at
        return bool(value == opens_at if opens_at else value != value_of(usual, setting))

    return [each for each in switches() if is_on(each)]


def value_of(configuration: Configuration, setting: Setting) -> object:
    """The value of a setting in a configuration."""
    return reduce(getattr, setting.path, configuration)
