"""Whether a message meets the conditions of a rule: the cheapest first, expressions last."""

from uuid import UUID

from rpcqm.client.message import ReceivedMessage
from rpcqm.codec.filters.matching import Matcher, matches
from rpcqm.codec.filters.message_filter import MessageFilter
from rpcqm.codec.packet.enums import MessageClass
from rpcqm.codec.security.identifier import Sid
from rpcqm.codec.trigger_rule import TriggerRule
from rpcqm.triggers.evaluator import Evaluates
from rpcqm.triggers.questions import JSON_PATH, XPATH
from rpcqm.triggers.values import octets_of

_FIRST_REFUSAL = 0x8000
_PLAIN = {
    "normal": MessageClass.MQMSG_CLASS_NORMAL,
    "report": MessageClass.MQMSG_CLASS_REPORT,
}


def _classes(word: str) -> frozenset[int] | None:
    """The classes that a word of a rule stands for."""
    if not word:
        return None
    if word in _PLAIN:
        return frozenset({_PLAIN[word]})
    refused = word == "refusal"
    others = set(MessageClass) - set(_PLAIN.values())
    return frozenset(each for each in others if (each >= _FIRST_REFUSAL) is refused)


class Conditions:
    """The conditions of one rule."""

    def __init__(self, rule: TriggerRule, evaluator: Evaluates) -> None:
        self._rule = rule
        self._evaluator = evaluator
        self._heads = Matcher(_filter_of_heads(rule))
        self._text = Matcher(MessageFilter(body=rule.text)) if rule.text else None
        self._source = UUID(rule.source) if rule.source else None

    def may_hold(self, message: ReceivedMessage) -> bool:
        """Whether all conditions hold that do not need the body."""
        rule = self._rule
        return (
            (rule.application_tag is None or message.application_tag == rule.application_tag)
            and (self._source is None or message.source_machine_identifier == self._source)
            and matches(self._heads, message)
        )

    async def hold(self, message: ReceivedMessage) -> bool:
        """Whether all conditions hold for a whole message; raises EvaluationError."""
        if not self.may_hold(message):
            return False
        if self._text is not None and not matches(self._text, message):
            return False
        rule = self._rule
        for kind, expression in ((XPATH, rule.xpath), (JSON_PATH, rule.json_path)):
            if expression and not await self._evaluator.holds(kind, expression, octets_of(message)):
                return False
        return True


def _filter_of_heads(rule: TriggerRule) -> MessageFilter:
    low = 0 if rule.priority_from is None else rule.priority_from
    high = 7 if rule.priority_to is None else rule.priority_to
    return MessageFilter(
        label=rule.label or None,
        sender=Sid.parse(rule.sender) if rule.sender else None,
        classes=_classes(rule.message_class),
        size_min=rule.size_from,
        size_max=rule.size_to,
        priorities=frozenset(range(low, high + 1)),
    )
