"""Names of accounts and groups by their SIDs, and which SIDs are those of a machine's own."""

from contextlib import suppress
from typing import TYPE_CHECKING

from rpcqm.base.errors import DecodeError, MQError, RpcFault
from rpcqm.codec.security.identifier import Sid
from rpcqm.codec.security.permissions import WELL_KNOWN

if TYPE_CHECKING:
    from rpcqm.client.queue_manager import QueueManagerClient

_ADMINISTRATOR = 500
"""The last number in the SID of a machine's own administrator ([MS-DTYP] 2.4.2.4)."""
_OF_A_MACHINE = (21,)
ADMINISTRATOR = "administrator"
"""What root and the service's own user are called, who have no account."""


def is_of_a_machine(sid: Sid) -> bool:
    """Whether a SID is that of an account that one machine, or a domain, has."""
    return sid.sub_authorities[:1] == _OF_A_MACHINE


def is_administrator(sid: Sid) -> bool:
    """Whether a SID is that of root and the service's own user, a machine's administrator."""
    return is_of_a_machine(sid) and sid.sub_authorities[-1] == _ADMINISTRATOR


def administrator_beside(account: Sid) -> Sid:
    """The administrator's SID of an account's machine: only the last number differs."""
    return Sid(account.authority, (*account.sub_authorities[:-1], _ADMINISTRATOR))


async def names_of_accounts(client: "QueueManagerClient", *others: Sid | str) -> dict[Sid, str]:
    """Names of the well-known identifiers, and of accounts if the caller may list them.

    `others` are accounts and groups that may be those of a domain: they are asked for.
    """
    names = {sid: word for word, sid in WELL_KNOWN.items()}
    try:
        accounts = await client.accounts.list()
    except (MQError, RpcFault, DecodeError):  # elsewhere, and to others, accounts have no names
        accounts = ()
    names |= {Sid.parse(account.sid): account.name for account in accounts}
    wanted = [str(each) for each in others if isinstance(each, str) or _is_asked_for(each, names)]
    if wanted:
        with suppress(MQError, RpcFault, DecodeError):  # an older server knows no domain
            found = await client.accounts.look_up(wanted)
            names |= {Sid.parse(sid): name for sid, name in found.items()}
    return names


def _is_asked_for(sid: Sid, names: dict[Sid, str]) -> bool:
    return is_of_a_machine(sid) and sid not in names


async def names_of_senders(client: "QueueManagerClient") -> dict[str, str]:
    """The same by SIDs as texts, with the administrator of the machine that has the accounts."""
    names = await names_of_accounts(client)
    beside = {administrator_beside(sid): ADMINISTRATOR for sid in names if is_of_a_machine(sid)}
    return {str(sid): name for sid, name in {**beside, **names}.items()}
