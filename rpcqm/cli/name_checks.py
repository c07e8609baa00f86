"""What `rpcqm doctor` says of further names of this computer, and of those that it lacks."""

import socket
from collections.abc import Iterator

from rpcqm.base.addresses import split_host
from rpcqm.cli.asking import NotAnsweredError, attention_of
from rpcqm.cli.checks import Check, CheckedMachine, CheckResult, Level
from rpcqm.config.aliases import BINARY_PORT, addresses_of_peers

COM_NAME = "com_name"
"""The code by which an overview says that COM objects lack a name."""


def check_aliases(patient: CheckedMachine) -> Iterator[CheckResult]:
    """Each further name: that it has an address, and none of another queue manager."""
    configuration = patient.configuration
    peers = addresses_of_peers(configuration.binary.peers, BINARY_PORT)
    for alias in configuration.aliases:
        host, port = split_host(alias)
        found = _addresses(host)
        taken = sorted(peers[each] for each in found if port is None and each in peers)
        listed = ", ".join(sorted(found))
        if not found:
            text = (
                f"`{alias}` has no address here; see that others find this computer by it, also "
                "those that acknowledge messages to it."
            )
            yield CheckResult("aliases", Level.WARNING, text)
        elif taken:
            text = f"`{alias}` is {listed}, where {taken[0]} is by `binary.peers`."
            yield CheckResult("aliases", Level.PROBLEM, text)
        else:
            yield CheckResult("aliases", Level.GOOD, f"`{alias}` is {listed}.")


def _addresses(host: str) -> set[str]:
    try:
        return {str(entry[4][0]) for entry in socket.getaddrinfo(host, None)}
    except (OSError, UnicodeError):
        return set()


def check_com_names(patient: CheckedMachine) -> Iterator[CheckResult]:
    """The names by which clients of COM objects have called, and which the objects lack."""
    running = patient.running
    if running is None or "dcom" not in running.endpoints:
        return
    try:
        found = attention_of(running)
    except NotAnsweredError as error:
        text = f"By which names clients call cannot be told: {error}."
        yield CheckResult("COM objects", Level.WARNING, text)
        return
    texts = [each["text"] for each in found if each["code"] == COM_NAME]
    for text in texts:
        yield CheckResult("COM objects", Level.WARNING, text)
    if not texts:
        text = "No client has called by a name that COM objects lack."
        yield CheckResult("COM objects", Level.GOOD, text)


NAME_CHECKS: tuple[Check, ...] = (check_aliases, check_com_names)
