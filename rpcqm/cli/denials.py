"""Which entry of a queue's permissions keeps a caller out: a denial wins over what is granted."""

import argparse
import getpass
import os
import shlex
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rpcqm.base.errors import DecodeError, MQError, RpcFault
from rpcqm.cli.errors import UsageMistake
from rpcqm.cli.options import queue_name

if TYPE_CHECKING:
    from rpcqm.client.queue_manager import QueueManagerClient
    from rpcqm.codec.security.descriptor import SecurityDescriptor
    from rpcqm.codec.security.identifier import Sid


@dataclass(frozen=True, slots=True)
class Denial:
    """Who is denied what, and whether the caller owns the queue and may take that back."""

    who: str
    words: str
    owned: bool

    def sentence(self, queue: str) -> str:
        """What decides, and the commands that change it."""
        name, rights = shlex.quote(queue.partition(";")[0]), self.words.replace(",", "")
        revoke = f"`rpcqm queue acl revoke {name} {shlex.quote(self.who)} {rights} --denied`"
        if not self.owned:
            owner = f"`rpcqm queue acl owner {name} administrators`"
            revoke = f"administrators first take the queue over by {owner}; {revoke}"
        return f"{self.who} is denied: {self.words}; {revoke} takes that back"


async def denial_of(client: "QueueManagerClient", arguments: argparse.Namespace) -> Denial | None:
    """The denial that decides of the queue of a command; None if nobody tells of one."""
    queue = getattr(arguments, "queue", None)
    if not isinstance(queue, str):
        return None
    try:
        descriptor = await client.queues.security(queue_name(arguments, queue))
        sids = await _sids(client, arguments, descriptor)
    except (MQError, RpcFault, DecodeError, UsageMistake):
        return None
    return _decisive(descriptor, sids)


async def _sids(
    client: "QueueManagerClient", arguments: argparse.Namespace, descriptor: "SecurityDescriptor"
) -> "dict[Sid, str]":
    """The caller and the groups that the caller is in, as far as that is known here."""
    # Only now, because most commands need none of it.
    from rpcqm.cli.account_names import is_administrator, names_of_accounts
    from rpcqm.codec.security.permissions import WELL_KNOWN

    words = ["everyone", "authenticated"]
    local = arguments.server is None
    if local and os.geteuid() == 0:
        words.append("administrators")
    found = {WELL_KNOWN[word]: word for word in words}
    caller = getpass.getuser() if local else (arguments.user or "")
    names = await names_of_accounts(client)
    found |= {sid: name for sid, name in names.items() if name.casefold() == caller.casefold()}
    owner = descriptor.owner
    if local and os.geteuid() == 0 and owner and is_administrator(owner):
        found[owner] = "administrator"
    return found


def _decisive(descriptor: "SecurityDescriptor", sids: "dict[Sid, str]") -> Denial | None:
    """The first denial of any of the identifiers without which the caller could do more."""
    from rpcqm.codec.security.access_check import PreparedDescriptor
    from rpcqm.codec.security.permissions import QUEUE, permissions, words_of

    everybody = frozenset(map(str, sids))
    may = PreparedDescriptor(descriptor, QUEUE.mapping).granted(everybody)
    for entry in permissions(descriptor, QUEUE):
        if not entry.denied or entry.sid not in sids:
            continue
        without = _without_denials(descriptor, entry.sid)
        if PreparedDescriptor(without, QUEUE.mapping).granted(everybody) & entry.denied & ~may:
            owned = descriptor.owner in sids
            return Denial(sids[entry.sid], words_of(entry.denied, QUEUE), owned)
    return None


def _without_denials(descriptor: "SecurityDescriptor", sid: "Sid") -> "SecurityDescriptor":
    from rpcqm.codec.security.descriptor import AceType

    assert descriptor.dacl is not None
    kept = [
        ace
        for ace in descriptor.dacl.aces
        if ace.sid != sid or ace.type != AceType.ACCESS_DENIED_ACE_TYPE
    ]
    return replace(descriptor, dacl=replace(descriptor.dacl, aces=tuple(kept)))
