"""What is known here of a message that another queue manager has taken."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from rpcqm.client.names import is_format_name
from rpcqm.codec.names.format_name import FormatName

if TYPE_CHECKING:
    from rpcqm.client.maintenance import RecordedEvent

_ACCEPTED = ("by the next hop", "in order")
_DECIDED = "finally, "


def outcomes(events: "Iterable[RecordedEvent]") -> Iterator[str]:
    """A sentence for each queue elsewhere whose queue manager has accepted the message.

    The protocol tells no more unless an acknowledgement was asked for, or the message is
    transactional.
    """
    acknowledged = [event for event in events if event.happening == "acknowledged"]
    told = {event.detail: event.queue for event in acknowledged if not is_format_name(event.queue)}
    elsewhere = [event for event in acknowledged if is_format_name(event.queue)]
    for queue in dict.fromkeys(event.queue for event in elsewhere):
        details = [event.detail for event in elsewhere if event.queue == queue]
        who = _taker(queue)
        if decision := next((each for each in details if each.startswith(_DECIDED)), ""):
            yield f"{who} has told what became of it: {decision.removeprefix(_DECIDED)}."
        elif told:
            classes = ", ".join(f"{detail} (in {where})" for detail, where in told.items())
            yield f"It was accepted by {who}; acknowledgements tell what became of it: {classes}."
        elif any(detail in _ACCEPTED for detail in details):
            yield (
                f"It was accepted by {who}; what {who} did with it isn't told. `rpcqm send --ack "
                f"full-receive --admin-queue Q` asks for that; the log and the dead-letter queues "
                f"of {who} tell if it was refused there."
            )


def _taker(queue: str) -> str:
    """The computer of a direct name, which is where the message went."""
    name = FormatName.parse(queue)
    return name.direct_name.host if isinstance(name.value, str) else "the next hop"
