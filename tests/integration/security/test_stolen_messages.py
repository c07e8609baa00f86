"""Messages go to the queue manager that they are for, not to who claims its GUID (G117)."""

import json
from contextlib import closing
from uuid import uuid4

import pytest

from rpcqm.testing import private_queue_manager
from tests.support.binary.stranger import Destination, Stranger, Victim

THIEF = "127.0.0.2"


def unsent(victim: Victim) -> int:
    said = victim.queue_manager.run("queue", "list", "--outgoing", "--json").stdout
    return sum(queue["messages"] for queue in json.loads(said))


@pytest.mark.conformance("MQQB-rule-3.1.5.2.1")
def test_a_message_goes_to_where_its_queue_manager_is_known_to_be() -> None:
    with closing(Destination()) as bob:
        peers = f'[binary]\npeers = "{bob.guid}=127.0.0.1:{bob.port}"\n'
        with (
            private_queue_manager(configuration=peers) as queue_manager,
            Stranger(queue_manager.endpoint("binary"), bob.guid, THIEF),
        ):
            queue_manager.run("send", f"PRIVATE={bob.guid}\\00000010", "--body", "secret")
            bob.accept()
            assert bob.next_message().body == "secret".encode("utf-16-le")


@pytest.mark.conformance("MQQB-rule-3.1.5.2.1")
def test_nobody_can_claim_the_messages_of_a_queue_manager_that_is_unknown() -> None:
    with private_queue_manager() as queue_manager:
        alice, claimed = Victim(queue_manager), uuid4()
        with Stranger(alice.address, claimed, THIEF) as thief:
            queue_manager.run("send", f"PRIVATE={claimed}\\00000010", "--body", "secret")
            alice.await_all(thief)
            assert not thief.messages()
            assert unsent(alice) == 1
