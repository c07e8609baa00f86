"""The settings of a queue manager."""

from collections.abc import Callable
from dataclasses import dataclass

from rpcqm.adm.directory import DirectorySource
from rpcqm.adm.directory_writer import DirectoryWriter
from rpcqm.codec.types.mqvalues import INFINITE


@dataclass(slots=True)
class QueueManagerSettings:
    """Names, limits and switches; quotas are KB.

    The subjects of a queue manager share one object: what is changed there counts at once.

    `http_port` and `https_port` are where messages over HTTP arrive, -1 for nowhere, and
    `srmp_http_support` is whether there are any. `addresses` are the machine's own IP
    addresses, by which direct names may call it (G10), `aliases` further names of it (G500).
    `directory` reads the directory, None in a workgroup; `directory_writer` writes into a real
    one, None where nothing is published. `directory_missed` is called with each object that was
    looked for and is not there. `directory_needs_us` is whether a directory that does not have this
    queue manager stays offline, once it was (G760).
    `identity_order` names an order to become another queue manager, "" if there is none (G491).
    """

    computer_name: str = "localhost"
    qualified_computer_name: str = ""
    addresses: tuple[str, ...] = ("127.0.0.1",)
    aliases: tuple[str, ...] = ()
    queue_manager_quota: int = 0x0010_0000
    journal_quota: int = INFINITE
    queue_quota: int = INFINITE
    supporting_server: bool = False
    routing_server: bool = False
    hardened_security: bool = False
    srmp_http_support: bool = False
    http_port: int = -1
    https_port: int = -1
    send_insecure_nacks: bool = False
    workgroup_default_security: bool = False
    queue_manager_version: str = ""
    operating_system_version: str = ""
    directory: DirectorySource | None = None
    directory_writer: DirectoryWriter | None = None
    directory_missed: Callable[[], None] | None = None
    directory_needs_us: bool = True
    identity_order: str = ""
    outgoing_queues: int = 8192
    outgoing_queues_per_account: int = 256
    outgoing_queues_per_source: int = 256
