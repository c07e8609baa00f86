"""What `rpcqm doctor` says of safety: switches that are on, and queues that are open."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rpcqm.cli.asking import NotAnsweredError, answer_of
from rpcqm.cli.checks import Check, CheckedMachine, CheckResult, Level
from rpcqm.config.schema import switches_on
from rpcqm.rpc.security.context import AuthenticationError
from rpcqm.rpc.security.providers import check_private

if TYPE_CHECKING:
    from rpcqm.client.queue_manager import QueueManagerClient


def check_switches(patient: CheckedMachine) -> Iterator[CheckResult]:
    """Every switch that is on, and what it opens."""
    on = switches_on(patient.configuration)
    for setting in on:
        yield CheckResult(
            "switches", Level.WARNING, f"`{setting.key}` is on. {setting.about.opens}"
        )
    if not on:
        yield CheckResult("switches", Level.GOOD, "No switch that lowers safety is on.")


def check_keys(patient: CheckedMachine) -> Iterator[CheckResult]:
    """Whether the Kerberos keys are the service's own secret."""
    keytab = patient.configuration.security.keytab
    if keytab is None:
        return
    try:
        check_private(keytab)
    except AuthenticationError as error:
        yield CheckResult(
            "keytab", Level.PROBLEM, f"The keys in {keytab} are not private: {error}."
        )
    else:
        yield CheckResult("keytab", Level.GOOD, f"The keys in {keytab} are private.")


def check_exposed_queues(patient: CheckedMachine) -> Iterator[CheckResult]:
    """The queues of a running queue manager that are open to Anonymous, or wholly to everyone."""
    if patient.running is None:
        return
    try:
        exposed, open_to_all = answer_of(patient.running, _exposed_queues)
    except NotAnsweredError as error:
        text = f"Who may read the queues cannot be told: {error}."
        yield CheckResult("queues", Level.WARNING, text)
        return
    for name in exposed:
        text = f"Anonymous owns `{name}` or may read it: `rpcqm queue acl show` tells more."
        yield CheckResult("queues", Level.WARNING, text)
    for name in open_to_all:
        text = (
            f"Everyone who logs on may delete `{name}` or change its permissions, whatever else is "
            "granted: `rpcqm queue acl revoke` takes that from everyone."
        )
        yield CheckResult("queues", Level.WARNING, text)
    if not exposed:
        yield CheckResult("queues", Level.GOOD, "Anonymous neither owns nor may read a queue.")


async def _exposed_queues(client: "QueueManagerClient") -> tuple[list[str], list[str]]:
    """The queues that Anonymous owns or may read, and those where everyone may do everything."""
    exposed = await client.maintenance.exposed_queues()
    queues = (await client.maintenance.status()).queues
    return exposed, [queue.name for queue in queues if queue.open_to_all]


SAFETY_CHECKS: tuple[Check, ...] = (check_switches, check_keys, check_exposed_queues)
