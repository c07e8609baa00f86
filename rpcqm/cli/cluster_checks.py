"""What `rpcqm doctor` says of a cluster: the log's servers, and the other nodes."""

import asyncio
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from rpcqm.base.text import visible
from rpcqm.base.units import duration_text
from rpcqm.cli.asking import NotAnsweredError, answer_of
from rpcqm.cli.checks import Check, CheckedMachine, CheckResult, Level
from rpcqm.cli.output import size_text
from rpcqm.config import ConfigurationError
from rpcqm.config.replica_files import check_replica, is_nats, read_access
from rpcqm.config.replica_section import ReplicaSection

if TYPE_CHECKING:
    from rpcqm.client.queue_manager import QueueManagerClient
    from rpcqm.replica.nats_health import ServersSeen

_SUBJECT = "cluster"
MOST_SILENCE = 30_000
"""Milliseconds after which a node that has told nothing counts as away."""
MOST_LAG = 60_000
MOST_CLOCK = 5_000
"""Milliseconds by which clocks of nodes may differ: expiry of messages goes by them."""
FILLING = 0.8
MIB = 1 << 20


def check_log(patient: CheckedMachine) -> Iterator[CheckResult]:
    """The log's servers: enough of them, recent, and with copies that are up to date."""
    section = patient.configuration.replica
    if not section.log:
        return
    if mistakes := check_replica(section):
        yield CheckResult(_SUBJECT, Level.PROBLEM, str(ConfigurationError(mistakes)))
        return
    if section.tries_out:
        text = "The log is one server on this machine, which keeps one copy: this is for trying."
        yield CheckResult(_SUBJECT, Level.WARNING, text)
    if not is_nats(section):
        text = "Look after the log's database by its own means; nodes start if it replicates."
        yield CheckResult(_SUBJECT, Level.GOOD, text)
        return
    yield from _check_servers(section)


def _check_servers(section: ReplicaSection) -> Iterator[CheckResult]:
    if not section.tries_out and len(section.log) < 3:
        text = "`replica.log` names fewer than three servers: with one of two lost nothing goes on."
        yield CheckResult(_SUBJECT, Level.PROBLEM, text)
    try:
        seen = asyncio.run(_seen(section))
    except Exception as error:  # whatever the client library meets, it is said here
        yield CheckResult(_SUBJECT, Level.PROBLEM, visible(str(error)))
        return
    for each in seen.silent:
        yield CheckResult(_SUBJECT, Level.PROBLEM, visible(each))
    for each in seen.old:
        text = f"{visible(each)} may lose what it has acknowledged: use 2.15.3 or newer."
        yield CheckResult(_SUBJECT, Level.PROBLEM, text)
    for each in seen.behind:
        text = f"The copy of the log at {visible(each)} is not up to date."
        yield CheckResult(_SUBJECT, Level.PROBLEM, text)
    if not (seen.silent or seen.old or seen.behind):
        count = len(section.log)
        text = (
            f"{count} of {count} servers of the log answer{_led(seen)}. Whether they sync "
            "each record they tell nobody: it is `sync_interval: always` in their configuration."
        )
        yield CheckResult(_SUBJECT, Level.GOOD, text)


def _led(seen: "ServersSeen") -> str:
    if not seen.exists:
        return ", and have no log yet"
    return f", and {visible(seen.leader)} leads" if seen.leader else ", and none of them leads"


async def _seen(section: ReplicaSection) -> "ServersSeen":
    # Only now, because few have it.
    from rpcqm.replica.nats_health import look_at_servers
    from rpcqm.service.cluster.engines import nats_settings

    return await look_at_servers(nats_settings(section, read_access(section)))


def check_nodes(patient: CheckedMachine) -> Iterator[CheckResult]:
    """The other nodes, by what they have told this one: whether any of them can take over."""
    if not patient.configuration.replica.log or patient.running is None:
        return
    try:
        told = answer_of(patient.running, _status)
    except NotAnsweredError as error:
        yield CheckResult(_SUBJECT, Level.PROBLEM, f"The node does not tell how it is: {error}.")
        return
    findings = list(_node_findings(told, patient.configuration.storage.reserve * MIB))
    yield from findings
    if not findings:
        text = f"{visible(told['active'])} is active, and every other node is up to date."
        yield CheckResult(_SUBJECT, Level.GOOD, text)


async def _status(client: "QueueManagerClient") -> dict[str, Any]:
    return await client.cluster.status()


def _node_findings(told: Mapping[str, Any], reserve: int) -> Iterator[CheckResult]:
    if told["doubt"]:
        text = f"A write is in doubt for {duration_text(told['doubted'] / 1000)}: {told['doubt']}."
        yield CheckResult(_SUBJECT, Level.PROBLEM, visible(text))
    if told["log_bytes"] > FILLING * told["log_maximum"]:
        text = f"The log has {size_text(told['log_bytes'])}, and is full soon: is a node away?"
        yield CheckResult(_SUBJECT, Level.PROBLEM, text)
    own = next((each for each in told["members"] if each["node"] == told["node"]), None)
    others = [each for each in told["members"] if each["node"] != told["node"]]
    if not others:
        text = "No other node has told of itself: nobody takes over from the one that is active."
        yield CheckResult(_SUBJECT, Level.PROBLEM, text)
    for each in others:
        for level, text in _member_findings(each, own or each, reserve):
            yield CheckResult(_SUBJECT, level, f"Node {visible(each['node'])} {text}")


def _member_findings(
    member: Mapping[str, Any], own: Mapping[str, Any], reserve: int
) -> Iterator[tuple[Level, str]]:
    """Ends of sentences about a node."""
    if member["lost"]:
        yield Level.PROBLEM, "is too far behind, and has to join anew."
        return
    if member["age"] > MOST_SILENCE:
        yield Level.PROBLEM, f"has told nothing for {duration_text(member['age'] / 1000)}."
        return
    if member["lag_milliseconds"] > MOST_LAG:
        yield Level.WARNING, f"is {duration_text(member['lag_milliseconds'] / 1000)} behind."
    if abs(member["ahead"]) > MOST_CLOCK:
        direction = "ahead of" if member["ahead"] > 0 else "behind"
        seconds = duration_text(abs(member["ahead"]) / 1000)
        yield Level.PROBLEM, f"has a clock that is {seconds} {direction} the one here, at least."
    if member["version"] != own["version"]:
        yield Level.WARNING, f"runs version {visible(member['version'])}: is an upgrade under way?"
    if member["files"] != own["files"]:
        yield Level.PROBLEM, "has other keys, certificates or keytabs than this one."
    if member["free"] < reserve:
        yield Level.PROBLEM, f"has {size_text(member['free'])} free, less than storage.reserve."


CLUSTER_CHECKS: tuple[Check, ...] = (check_log, check_nodes)
