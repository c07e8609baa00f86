"""The table [directory]: what an Active Directory is asked for."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from rpcqm.codec.security.identifier import Sid
from rpcqm.config.about import About

LOCAL, DOMAIN = "local", "domain"
READ_ONLY, PUBLISH = "read-only", "publish"
QUEUES, MACHINE, ROUTERS = "queues", "queue-manager", "settings"
"""What is published: public queues, the queue manager's own object, the settings of routers."""
SEALED, LDAPS, STARTTLS = "sealed", "ldaps", "starttls"
HOST = r"[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?"


def check_sid(text: str) -> None:
    """An identifier that a domain has given; raises ValueError."""
    try:
        found = Sid.parse(text)
    except ValueError:
        raise ValueError("which is no SID, such as S-1-5-21-1-2-3-1104") from None
    if found.authority != 5 or found.sub_authorities[:1] != (21,):
        raise ValueError("which is of no domain")


def check_server(text: str) -> None:
    """A controller by its name, because Kerberos knows it by that; raises ValueError."""
    if not re.fullmatch(rf"{HOST}(?::\d{{1,5}})?", text) or text.replace(".", "").isdigit():
        raise ValueError(
            "which is no name of a host, such as dc1.example.org or dc1.example.org:389"
        )


def check_base(text: str) -> None:
    """A distinguished name; raises ValueError."""
    if "=" not in text or not text.isprintable():
        raise ValueError("which is no distinguished name, such as OU=Servers,DC=example,DC=org")


def check_published(text: str) -> None:
    """What may be published; raises ValueError."""
    if text not in (QUEUES, MACHINE, ROUTERS):
        raise ValueError(f"which is none of {QUEUES}, {MACHINE}, {ROUTERS}")


@dataclass(frozen=True, slots=True)
class DirectorySection:
    """An Active Directory, and what counts of it here (docs/directory.md)."""

    domain: Annotated[
        str,
        About(
            "Domain whose directory says, by LDAP, what other queue managers, sites and public "
            "queues there are, such as `example.org`; it needs the extra `directory`. What "
            "`directory_file` says of the same identifiers counts before.",
            default="none",
            form=rf"|{HOST}",
        ),
    ] = ""
    servers: Annotated[
        tuple[str, ...],
        About(
            "Names of domain controllers, with a port or without, in the order in which they are "
            "asked.",
            default="those that DNS lists",
            check=check_server,
        ),
    ] = ()
    site: Annotated[
        str,
        About("Site whose controllers are asked first, where DNS lists them.", default="none"),
    ] = ""
    security: Annotated[
        str,
        About(
            "How a connection is protected: sealed by Kerberos, or by TLS, whose certificate "
            "must be trusted.",
            choices=(SEALED, LDAPS, STARTTLS),
        ),
    ] = SEALED
    ca_file: Annotated[
        Path | None,
        About("Certificates of authorities that are trusted for TLS.", default="the system's"),
    ] = None
    keytab: Annotated[
        Path | None,
        About(
            "File with the keys of the machine's account; nobody else may read it.",
            default="the system's",
        ),
    ] = None
    principal: Annotated[
        str,
        About(
            "The machine's account, such as `QM1$@EXAMPLE.ORG`.", default="this machine's, by name"
        ),
    ] = ""
    search_bases: Annotated[
        tuple[str, ...],
        About(
            "Distinguished names below which queue managers and queues are looked for.",
            default="the whole domain",
            check=check_base,
        ),
    ] = ()
    round: Annotated[
        int, About("How long after a round the next one begins.", (1, 86_400), unit="s")
    ] = 60
    full_round: Annotated[
        int, About("How often it is looked what is gone.", (1, 604_800), unit="s")
    ] = 300
    timeout: Annotated[int, About("How long a controller may say nothing.", (1, 600), unit="s")] = 5
    keep_for: Annotated[
        int,
        About(
            "How long what was read last counts when no controller answers.",
            (1, 31_536_000),
            unit="s",
        ),
    ] = 604_800
    most_objects: Annotated[
        int,
        About(
            "Public queues of the directory that are kept.",
            (1, 1_000_000),
            beyond="further ones are not known here; `rpcqm doctor` says so",
        ),
    ] = 50_000
    mode: Annotated[
        str,
        About(
            "Whether the directory is only read, or what is here is published in it; "
            "`rpcqm directory join` comes first.",
            choices=(READ_ONLY, PUBLISH),
        ),
    ] = READ_ONLY
    publish: Annotated[
        tuple[str, ...],
        About(
            "What is published: public queues that are made here (`queues`), the attributes of the "
            "queue manager (`queue-manager`), and for routers their settings in each site "
            "(`settings`).",
            default="`queues`",
            check=check_published,
        ),
    ] = (QUEUES,)
    publish_permissions: Annotated[
        bool,
        About(
            "Whether permissions of public queues are written into the directory, as rights of "
            "its objects. It is untried on Windows.",
            opens="Whoever has a right to a queue here has the one of the same name to its object.",
        ),
    ] = False
    accounts: Annotated[
        str,
        About(
            "Whose accounts log on by Kerberos: those of `rpcqm user`, by their names, or those "
            "of the domain, by what its controller says of them in their tickets.",
            choices=(LOCAL, DOMAIN),
        ),
    ] = LOCAL
    administrators: Annotated[
        tuple[str, ...],
        About(
            "SIDs of accounts and groups of the domain that administer this queue manager.",
            default="none",
            check=check_sid,
            opens="These accounts of the domain, and the members of these groups, do everything "
            "that an administrator of this machine does.",
        ),
    ] = ()
