"""Names of accounts and groups by their SIDs, and which SIDs are those of a machine's own."""

from typing import TYPE_CHECKING

from rpcqm.base.errors import DecodeError, MQError, RpcFault
from rpcqm.codec.security.identifier import Sid
from rpcqm.codec.security.permissions import WELL_KNOWN

if TYPE_CHECKING:
    from rpcqm.client.queue_manager import QueueManagerClient

_ADMINISTRATOR = 500
"""The last number in the SID of a machine's own administrator ([MS-DTYP] 2.4.2.4)."""
_OF_A_MACHINE = (21,)


def is_of_a_machine(sid: Sid) -> bool:
    """Whether a SID is that of an account that one machine, or a domain, has."""
    return sid.sub_authorities[:1] == _OF_A_MACHINE


def is_administrator(sid: Sid) -> bool:
    """Whether a SID is that of root and the service's own user, a machine's administrator."""
    return is_of_a_machine(sid) and sid.sub_authorities[-1] == _ADMINISTRATOR


def administrator_beside(account: Sid) -> Sid:
    """The administrator's SID of an account's machine: only the last number differs."""
    return Sid(account.authority, (*account.sub_authorities[:-1], _ADMINISTRATOR))


async def names_of_accounts(client: "QueueManagerClient") -> dict[Sid, str]:
    """Names of the well-known identifiers, and of accounts if the caller may list them."""
    names = {sid: word for word, sid in WELL_KNOWN.items()}
    try:
        accounts = await client.accounts.list()
    except (MQError, RpcFault, DecodeError):  # elsewhere, and to others, accounts have no names
        accounts = ()
    return names | {Sid.parse(account.sid): account.name for account in accounts}
