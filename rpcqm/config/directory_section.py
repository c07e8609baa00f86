"""The table [directory]: what an Active Directory is asked for."""

from dataclasses import dataclass
from typing import Annotated

from rpcqm.codec.security.identifier import Sid
from rpcqm.config.about import About

LOCAL, DOMAIN = "local", "domain"


def check_sid(text: str) -> None:
    """An identifier that a domain has given; raises ValueError."""
    try:
        found = Sid.parse(text)
    except ValueError:
        raise ValueError("which is no SID, such as S-1-5-21-1-2-3-1104") from None
    if found.authority != 5 or found.sub_authorities[:1] != (21,):
        raise ValueError("which is of no domain")


@dataclass(frozen=True, slots=True)
class DirectorySection:
    """An Active Directory, and what counts of it here."""

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
