"""What a queue manager does with the people of a domain, put together."""

from contextlib import AsyncExitStack

from rpcqm.adm.people import People
from rpcqm.operations.operations import Operations
from rpcqm.qm.engine import QueueManagerEngine
from rpcqm.service.domain_accounts import DomainAccounts
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
