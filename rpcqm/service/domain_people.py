"""What a queue manager does with the people of a domain, put together."""

from collections.abc import Iterator
from contextlib import AsyncExitStack
from itertools import chain

from rpcqm.adm.directory import DirectoryUnavailableError
from rpcqm.adm.directory_object import User
from rpcqm.adm.people import People
from rpcqm.base.errors import DecodeError
from rpcqm.codec.security.identifier import Sid
from rpcqm.operations.operations import Operations
from rpcqm.qm.engine import QueueManagerEngine
from rpcqm.service.domain_accounts import DomainAccounts
from rpcqm.service.domain_groups import DomainGroups
from rpcqm.service.domain_names import DomainNames
from rpcqm.service.domain_watch import DomainWatch


def follow_domain(
    engine: QueueManagerEngine,
    operations: Operations,
    accounts: DomainAccounts,
    people: People | None,
    round_seconds: float,
    undo: AsyncExitStack,
) -> None:
    """End what is open of accounts that the directory ends, and give SIDs their names.

    Without `people`, of a directory that is read, accounts end with their tickets only.
    """
    accounts.ended_hooks.append(engine.ended.tell)
    names = DomainNames(accounts, people, engine.clock)
    operations.accounts.elsewhere = names
    undo.push_async_callback(names.stop)
    if people is not None:
        watch = DomainWatch(accounts, people, engine.timers, int(round_seconds * 1000))
        watch.start()
        undo.push_async_callback(watch.stop)
        groups = DomainGroups(
            people,
            engine.timers,
            lambda: chain(_signers(engine, accounts), _holders(operations, accounts)),
        )
        accounts.groups_of = groups.of
        groups.start()
        engine.directory.online_hooks.append(groups.directory_changed)
        undo.push_async_callback(groups.stop)


def _holders(operations: Operations, accounts: DomainAccounts) -> Iterator[str]:
    """The SIDs of accounts of the domain whose messages go later, with the rights of then."""
    return filter(accounts.is_of, sorted(operations.scheduling.holders()))


def _signers(engine: QueueManagerEngine, accounts: DomainAccounts) -> Iterator[str]:
    """The SIDs of accounts of the domain that have certificates in the directory."""
    source = engine.settings.directory
    if source is None:
        return
    try:
        users = list(source().of(User))
    except DirectoryUnavailableError:
        return
    for user in users:
        try:
            sid = str(Sid.decode(user.security_identifier))
        except DecodeError:
            continue
        if user.certificates and accounts.is_of(sid):
            yield sid
