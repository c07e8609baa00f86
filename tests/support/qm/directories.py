"""A directory of three machines in two sites."""

from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path
from uuid import UUID

WORKSTATION = UUID("11111111-1111-4111-8111-111111111111")
ROUTER = UUID("22222222-2222-4222-8222-222222222222")
SERVER = UUID("33333333-3333-4333-8333-333333333333")
OWN_QUEUE = UUID("44444444-4444-4444-8444-444444444444")
THEIR_QUEUE = UUID("55555555-5555-4555-8555-555555555555")
LIST = UUID("66666666-6666-4666-8666-666666666666")
INNER_LIST = UUID("77777777-7777-4777-8777-777777777777")

DIRECTORY = rf"""
[enterprise]
name = "example"
default_time_to_live = 3600

[[site]]
name = "Berlin"
gates = ["ROUTER"]

[[site]]
name = "Paris"

[[routing_link]]
sites = ["Berlin", "Paris"]
cost = 10
gates = ["ROUTER"]

[[queue_manager]]
name = "WORKSTATION"
identifier = "{WORKSTATION}"
sites = ["Berlin"]
out_routing_servers = ["ROUTER"]
quota = 4096

[[queue_manager]]
name = "ROUTER"
identifier = "{ROUTER}"
qualified_name = "router.example.org"
addresses = ["192.0.2.20"]
sites = ["Berlin", "Paris"]
routing_server = true

[[queue_manager]]
name = "SERVER"
identifier = "{SERVER}"
qualified_name = "server.example.org"
sites = ["Paris"]
in_routing_servers = ["ROUTER"]

[[queue]]
path = 'WORKSTATION\reports'
identifier = "{OWN_QUEUE}"
label = "Reports"

[[queue]]
path = 'SERVER\orders'
identifier = "{THEIR_QUEUE}"
transactional = true
base_priority = 7

[[user]]
name = "alice"
sid = "S-1-5-21-1-2-3-1001"
certificates = ["MIIB"]

[[distribution_list]]
name = "everybody"
identifier = "{LIST}"
members = ['DIRECT=OS:other\private$\a', 'PUBLIC={OWN_QUEUE}', 'DL={INNER_LIST}']

[[distribution_list]]
name = "inner"
identifier = "{INNER_LIST}"
members = ['DIRECT=OS:OTHER\private$\A', 'PUBLIC={THEIR_QUEUE}', 'DL={LIST}']

[[queue_alias]]
name = "shop"
format_name = 'DIRECT=OS:other\private$\a'
full_path = "CN=shop"
"""


def write_directory(directory: Path, text: str = DIRECTORY) -> Path:
    """The file, in a directory."""
    path = directory / "directory.toml"
    path.write_text(text, "utf-8")
    return path


MACHINES = {"alice": UUID(int=0xA11CE), "router": UUID(int=0x70), "bob": UUID(int=0xB0B)}
"""Queue managers of a served network, and their identifiers."""


def network_directory(
    sites: Mapping[str, Sequence[str]],
    queues: Mapping[str, UUID],
    more: Mapping[str, str] | None = None,
    machines: Mapping[str, UUID] = MACHINES,
) -> str:
    """The directory file of machines with their sites, and of public queues by path name.

    `more` has further lines of the entry of a machine or a queue, `machines` their identifiers.
    """
    more = more or {}
    entries = [f'[[site]]\nname = "{site}"\n' for site in sorted({*chain(*sites.values())})]
    for name, of_machine in sites.items():
        names = ", ".join(f'"{site}"' for site in of_machine)
        entry = f'name = "{name}"\nidentifier = "{machines[name]}"\nsites = [{names}]\n'
        entries.append("[[queue_manager]]\n" + entry + more.get(name, ""))
    for path, identifier in queues.items():
        entry = f"path = '{path}'\nidentifier = \"{identifier}\"\n"
        entries.append("[[queue]]\n" + entry + more.get(path, ""))
    return "\n".join(entries)
