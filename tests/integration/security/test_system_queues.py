"""Nobody elsewhere sends to a queue manager's own queues ([MS-MQQB] 3.1.5.8.2, 3.1.5.8.3)."""

from collections.abc import Iterator

import pytest

from rpcqm.codec.packet.enums import MessageClass
from rpcqm.testing import private_queue_manager
from tests.support.binary.stranger import ALL_ACKNOWLEDGEMENTS, HERE, Stranger, Victim

OWN = {
    "PRIVATE$\\order_queue$": MessageClass.MQMSG_CLASS_NACK_ACCESS_DENIED,
    "PRIVATE$\\notify_queue$": MessageClass.MQMSG_CLASS_NACK_ACCESS_DENIED,
    "SYSTEM$;DEADLETTER": MessageClass.MQMSG_CLASS_NACK_BAD_DST_Q,
    "SYSTEM$;DEADXACT": MessageClass.MQMSG_CLASS_NACK_BAD_DST_Q,
    "SYSTEM$;JOURNAL": MessageClass.MQMSG_CLASS_NACK_BAD_DST_Q,
}


@pytest.fixture(scope="module")
def victim() -> Iterator[Victim]:
    configuration = "[security]\nsend_insecure_nacks = true\n"
    with private_queue_manager(configuration=configuration) as queue_manager:
        yield Victim(queue_manager)


@pytest.mark.conformance("MQQB-rule-3.1.5.8.2")
@pytest.mark.parametrize("queue", OWN)
def test_a_message_to_a_queue_of_the_system_is_refused(victim: Victim, queue: str) -> None:
    told = victim.create("told")
    with Stranger(victim.address) as stranger:
        stranger.send(
            HERE + queue,
            body=b"planted",
            administration_queue_format_name=told,
            acknowledgements_requested=ALL_ACKNOWLEDGEMENTS,
        )
        refused = victim.receive(told)
    assert refused.message_class == OWN[queue]
    if queue.startswith("SYSTEM$"):
        assert victim.bodies(HERE + queue) == []


@pytest.mark.parametrize("queue", [name for name in OWN if name.startswith("SYSTEM$")])
def test_no_acknowledgement_is_led_into_a_queue_of_the_system(victim: Victim, queue: str) -> None:
    late = victim.create("late")
    with Stranger(victim.address) as stranger:
        stranger.send(
            late,
            body=b"planted",
            time_to_reach_queue=1,
            administration_queue_format_name=HERE + queue,
            acknowledgements_requested=ALL_ACKNOWLEDGEMENTS,
        )
        victim.await_all(stranger)
    assert victim.bodies(HERE + queue) == []
