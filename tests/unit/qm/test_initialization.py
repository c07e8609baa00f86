"""Start, stop and what is there from the beginning ([MS-MQDMPR] 3.1.3, 3.1.4.1, .2, .12, .13)."""

from uuid import UUID

import pytest

from rpcqm.adm.enums import OperatingSystemType, QueueManagerState, QueueType
from rpcqm.qm.settings import QueueManagerSettings
from tests.support.queue_manager import SETTINGS, RunningQueueManager


@pytest.mark.conformance(
    "MQDMPR-event-queue_manager_started", "MQDMPR-rule-3.1.3", "MQDMPR-element-QueueManager"
)
def test_the_queue_manager_has_an_identity_for_ever(qm: RunningQueueManager) -> None:
    manager = qm.engine.queue_manager
    assert manager.queue_manager_state is QueueManagerState.READY
    assert manager.connection_active
    assert manager.computer_name == "WORKSTATION"
    assert manager.qualified_computer_name == "workstation.example.org"
    assert manager.operating_system_type is OperatingSystemType.FOREIGN
    assert manager.create_time == qm.clock.now() // 1000
    identifier = manager.identifier
    assert identifier != UUID(int=0)
    qm.advance(5_000)
    qm.restart(QueueManagerSettings("OTHERNAME"))
    again = qm.engine.queue_manager
    assert again is not manager
    assert again.identifier == identifier
    assert again.create_time == manager.create_time
    assert again.security == manager.security
    assert again.computer_name == "OTHERNAME"


@pytest.mark.conformance("MQDMPR-rule-3.1.3")
def test_the_queues_of_the_system_are_there(qm: RunningQueueManager) -> None:
    """order_queue$ is private queue 4 (G17)."""
    manager = qm.engine.queue_manager
    assert manager.system_deadletter_queue is qm.find(r"system$;DEADLETTER")
    assert manager.system_transactional_deadletter_queue is qm.find(r"system$;DEADXACT")
    assert manager.system_journal_queue is qm.find(r"system$;JOURNAL")
    order, notify = qm.find(r"private$\order_queue$"), qm.find(r"private$\notify_queue$")
    assert order.private_queue_number == 4
    assert notify.private_queue_number == 5
    for queue in manager.queue_collection.values():
        assert queue.queue_type is QueueType.SYSTEM
    first = order.identifier
    qm.restart()
    assert qm.find(r"private$\order_queue$").identifier == first


def test_messages_in_queues_of_the_system_outlive_a_restart(qm: RunningQueueManager) -> None:
    order = qm.find(r"private$\order_queue$")
    qm.send(order, b"ack")
    qm.restart()
    assert qm.bodies(qm.find(r"private$\order_queue$")) == [b"ack"]


def test_identifiers_go_on_after_a_restart(qm: RunningQueueManager) -> None:
    queue = qm.create()
    keys = [qm.send(queue, b"a")]
    message = qm.compose(queue).attributes.identifier
    qm.receive(qm.open(queue))
    qm.restart()
    queue = qm.find()
    keys.append(qm.send(queue, b"b"))
    assert keys == sorted(set(keys))
    assert qm.compose(queue).attributes.identifier.ordinal > message.ordinal


@pytest.mark.conformance("MQDMPR-event-take_offline", "MQDMPR-event-bring_online")
def test_the_network_is_left_and_joined_again(qm: RunningQueueManager) -> None:
    qm.engine.take_offline()
    assert qm.engine.queue_manager.connection_active is False
    qm.engine.bring_online()
    assert qm.engine.queue_manager.connection_active is True


def test_who_has_left_the_network_stays_away_over_restarts(
    qm: RunningQueueManager, capsys: pytest.CaptureFixture[str]
) -> None:
    """The order is done when it is durable, and a crash after that forgets nothing."""
    qm.done(qm.engine.take_offline())
    for again in (qm.restart, qm.crash):
        again()
        assert qm.engine.queue_manager.connection_active is False
        assert "still off the network" in capsys.readouterr().err
    qm.engine.take_offline()
    qm.done(qm.engine.bring_online())
    qm.restart()
    assert qm.engine.queue_manager.connection_active is True
    assert "off the network" not in capsys.readouterr().err


def test_the_settings_are_those_of_the_last_start(qm: RunningQueueManager) -> None:
    settings = QueueManagerSettings(
        SETTINGS.computer_name,
        queue_manager_quota=77,
        journal_quota=66,
        supporting_server=True,
        routing_server=True,
        srmp_http_support=True,
        hardened_security=True,
        queue_manager_version="6.3",
    )
    qm.restart(settings)
    manager = qm.engine.queue_manager
    assert (manager.queue_manager_quota, manager.journal_quota) == (77, 66)
    assert manager.supporting_server
    assert manager.routing_server
    assert manager.srmp_http_support
    assert manager.hardened_security
    assert manager.queue_manager_version == "6.3"
    qm.restart(SETTINGS)
    assert not qm.engine.queue_manager.hardened_security


@pytest.mark.conformance("MQDMPR-event-queue_manager_stopped")
def test_no_timer_outlives_the_queue_manager(qm: RunningQueueManager) -> None:
    qm.send(qm.create(), b"a", time_to_be_received=5)
    qm.engine.queue_manager_stopped()
    assert len(qm.clock.timers) == 0
