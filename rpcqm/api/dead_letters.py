"""Dead letters: listing them with reasons, acknowledging them, and sending them again."""

from rpcqm.api import models, parameters
from rpcqm.api.asked import Asked, Reply, settled
from rpcqm.api.problems import bad_request
from rpcqm.api.searching import lookup_id_of, names_for
from rpcqm.api.telling import ToldMessages
from rpcqm.codec.bodies.budget import DecodeBudget
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.names.written import DEAD_LETTER_QUEUES, HERE, format_name
from rpcqm.operations.codes import CLASSES
from rpcqm.operations.dead_letters import NotSent, Range
from rpcqm.operations.messages import Message
from rpcqm.operations.shapes import seen, shown


async def list_dead_letters(asked: Asked) -> Reply:
    """Messages that could not be delivered or were not received in time, of one queue."""
    wanted: parameters.DeadLetters = asked.parameters
    after = None if wanted.after is None else int(wanted.after)
    name = _queue(wanted.transactional)
    names = names_for(asked)
    told = ToldMessages(lambda message, budget: seen(_told(message, budget), names))
    page = asked.operations.messages.peek(
        asked.identity, name, after, wanted.limit, measure=told.measure
    )
    return Reply(200, octets=told.answer(page.next))


async def inspect_dead_letter(asked: Asked) -> Reply:
    """One dead letter, with its reason, and whether it was acknowledged."""
    wanted: parameters.WhichDeadLetters = asked.parameters
    key = lookup_id_of(asked.path["lookup_id"])
    name = _queue(wanted.transactional)
    message = asked.operations.messages.look_up(asked.identity, name, key)
    return Reply(200, seen(_told(message), names_for(asked)))


async def acknowledge_dead_letters(asked: Asked) -> Reply:
    """Acknowledge all dead letters that are there now; the answer counts the new ones."""
    return Reply(200, {"messages": asked.operations.dead_letters.acknowledge(asked.identity)})


async def resend_dead_letters(asked: Asked) -> Reply:
    """Send dead letters again: some, all, or all of one reason; each is one commit."""
    wanted: models.Resend = asked.content
    if (wanted.lookup_ids is not None) is wanted.all:
        raise bad_request("either lookup_ids or all is wanted")
    if wanted.reason is not None and not wanted.all:
        raise bad_request("a reason chooses among all")
    keys = None if wanted.lookup_ids is None else [lookup_id_of(x) for x in wanted.lookup_ids]
    named = wanted.queue
    name = _queue(wanted.transactional) if named is None else format_name(named, HERE)
    to = None if wanted.to is None else format_name(wanted.to, HERE)
    reason = None if wanted.reason is None else _word(wanted.reason)
    done = await settled(
        asked.operations.dead_letters.resend_all(
            asked.identity, name, reason, to, wanted.ttbr, keys, _where(wanted)
        )
    )
    rest = done.rest or Range()
    outcome = {
        "messages": done.messages,
        "failed": [_not_sent(each) for each in done.failed],
        "staying": done.reasons(),
        "more": done.rest is not None,
        "after": None if rest.after is None else str(rest.after),
        "until": None if rest.until is None else str(rest.until),
    }
    return Reply(200, outcome)


def _where(wanted: models.Resend) -> Range:
    if not wanted.all and (wanted.after or wanted.until):
        raise bad_request("after and until choose among all")
    after = None if wanted.after is None else lookup_id_of(wanted.after)
    return Range(after, None if wanted.until is None else lookup_id_of(wanted.until))


def _not_sent(letter: NotSent) -> dict[str, object]:
    return {
        "lookup_id": str(letter.lookup_identifier),
        "code": letter.error.status.name,
        "detail": letter.because,
    }


def _queue(transactional: bool) -> FormatName:
    return format_name(DEAD_LETTER_QUEUES[transactional])


def _word(reason: str) -> str:
    """A reason as overviews tell it, which may be given as the name of a class, too."""
    return reason.lower().removeprefix("mqmsg_class_").removeprefix("nack_")


def _told(message: Message, budget: DecodeBudget | None = None) -> dict[str, object]:
    told = shown(message, budget=budget)
    return told | {"reason": CLASSES.get(str(told["class"]), "")}
