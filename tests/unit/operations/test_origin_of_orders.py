"""An order's line says where the order came from, whenever its work goes on."""

import pytest

from rpcqm.base.completion import Completion
from rpcqm.base.identity import Identity
from rpcqm.operations import audit


async def _work(durable: Completion[None], identity: Identity) -> None:
    audit.note(identity, "begin", "orders")
    await durable
    audit.note(identity, "end", "orders")


def test_work_that_goes_on_in_the_turn_of_another_has_the_origin_of_its_order(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    acts: list[audit.Act] = []
    monkeypatch.setattr(audit, "listeners", [acts.append])
    durable: Completion[None] = Completion()
    identity = Identity("boss", "S-1-5-21-1-2-3-1000")
    with audit.ordered_from("192.0.2.7:4711", audit.HTTP):
        ended = audit.start_ordered(_work(durable, identity))
    with audit.ordered_from("198.51.100.1:1", audit.COM):
        durable.succeed(None)
    assert ended.done
    assert [(act.action, act.origin) for act in acts] == [
        ("begin", audit.Origin("192.0.2.7", audit.HTTP)),
        ("end", audit.Origin("192.0.2.7", audit.HTTP)),
    ]
