"""Compares messages with a filter: the cheapest conditions first, the body last (G605)."""

import enum

from rpcqm.base.errors import DecodeError
from rpcqm.codec.filters.body_text import Said, WantedText, says
from rpcqm.codec.filters.message_filter import MessageFilter
from rpcqm.codec.filters.patterns import compiled_expression, pattern_of_glob
from rpcqm.codec.packet.enums import SenderIdentifierType
from rpcqm.codec.packet.message import PacketMessage

LONGEST_EXPRESSED = 256 * 1024
"""Octets of a body in which a regular expression is looked for.

Bound `search.longest_expressed` [octets]: the body counts as not read, which the search tells.
"""


class Verdict(enum.Enum):
    """The result of a comparison."""

    NO = enum.auto()
    YES = enum.auto()
    READ = enum.auto()
    """The body decides, and has to be read (`read_body`)."""
    UNREAD = enum.auto()
    """The parts that were read do not match; the rest is too long to be read."""


_VERDICTS = {
    Said.NO: Verdict.NO,
    Said.YES: Verdict.YES,
    Said.MORE: Verdict.READ,
    Said.UNREAD: Verdict.UNREAD,
}


class Matcher:
    """Compares messages with one filter.

    `may_match` looks at the values in a queue's index, `compare` at a packet, `read_body` at the
    value of a body. Each gets the messages that passed the one before; `verdict` combines the last
    two.

    Raises MQError(MQ_ERROR_INVALID_PARAMETER) for an invalid regular expression, and for any if the
    library is missing.
    """

    def __init__(self, wanted: MessageFilter) -> None:
        self.wanted = wanted
        ignore_case = wanted.ignore_case
        label, body, regex = wanted.label, wanted.body, wanted.regex
        self._label = None if label is None else pattern_of_glob(label, ignore_case)
        self._text = None if body is None else WantedText(body, ignore_case)
        self._expression = None if regex is None else compiled_expression(regex, ignore_case)
        identifier = wanted.correlation_id
        self._correlation = b"" if identifier is None else identifier.encode()
        self._sender = b"" if wanted.sender is None else wanted.sender.encode()
        self._since = wanted.since or 0
        self._until = _FOREVER if wanted.until is None else wanted.until
        self._least = wanted.size_min or 0
        self._most = _FOREVER if wanted.size_max is None else wanted.size_max
        self._size_counts = wanted.size_min is not None or wanted.size_max is not None

    def may_match(self, arrival: int, stored_size: int, transactional: bool, priority: int) -> bool:
        """Whether a message can match, by its index entry; `arrival` is in milliseconds."""
        wanted, priorities = self.wanted.transactional, self.wanted.priorities
        return (
            self._since <= arrival <= self._until
            and stored_size >= self._least
            and (wanted is None or wanted is transactional)
            and (priorities is None or priority in priorities)
        )

    def compare(self, message: PacketMessage, sender: str = "") -> Verdict:
        """Compare the values in a packet; raises DecodeError for an unreadable one.

        `sender` is the SID of the sender, where the packet does not contain it.
        """
        if self._correlation and self._correlation not in bytes(message.buffer):
            return Verdict.NO  # whatever the place
        if not self._headers_match(message) or (self._sender and not self._sent(message, sender)):
            return Verdict.NO
        if self._text is None and self._expression is None:
            return Verdict.YES
        return self._compare_body(message)

    def read_body(self, message: PacketMessage) -> Verdict:
        """Decide by the body of a message for which `compare` gave READ; this may take long."""
        body, body_type = message.body, message.body_type
        if self._text is None:
            verdict = Verdict.YES
        else:
            verdict = _VERDICTS[self._text.in_octets(body, body_type)]
            if verdict is Verdict.READ:
                verdict = _VERDICTS[says(body, body_type, self._text.in_text)]
        if self._expression is None or verdict is Verdict.NO:
            return verdict
        expressed = self._expressed(message, body, body_type)
        return expressed if verdict is Verdict.YES or expressed is Verdict.NO else verdict

    def verdict(self, message: PacketMessage, sender: str = "") -> Verdict:
        """YES, NO or UNREAD, at once."""
        verdict = self.compare(message, sender)
        return self.read_body(message) if verdict is Verdict.READ else verdict

    def _headers_match(self, message: PacketMessage) -> bool:
        wanted = self.wanted
        return (
            (not self._correlation or message.correlation_identifier == wanted.correlation_id)
            and (wanted.priorities is None or message.priority in wanted.priorities)
            and (wanted.classes is None or message.message_class in wanted.classes)
            and (not self._size_counts or self._least <= message.body_size <= self._most)
            and (
                wanted.transactional is None
                or wanted.transactional is message.has_transaction_header
            )
            and (self._label is None or self._label.fullmatch(message.label) is not None)
        )

    def _sent(self, message: PacketMessage, sender: str) -> bool:
        if message.sender_identifier_type == SenderIdentifierType.SID:
            return message.sender_identifier == self._sender
        return sender == str(self.wanted.sender)

    def _compare_body(self, message: PacketMessage) -> Verdict:
        if self._expression is not None or self._text is None:
            return Verdict.READ
        return _VERDICTS[self._text.in_octets(message.body, message.body_type)]

    def _expressed(self, message: PacketMessage, body: bytes, body_type: int) -> Verdict:
        expression = self._expression
        assert expression is not None
        if expression.search(message.label.encode("utf-8", "replace")):
            return Verdict.YES
        if len(body) > LONGEST_EXPRESSED:
            return Verdict.UNREAD

        def test(text: str) -> bool:
            return expression.search(text.encode("utf-8", "replace")) is not None

        return _VERDICTS[says(body, body_type, test)]


_FOREVER = 1 << 64


def matches(matcher: Matcher, message: PacketMessage, sender: str = "") -> bool:
    """Whether the readable parts of a message match; a damaged one does not."""
    try:
        return matcher.verdict(message, sender) is Verdict.YES
    except DecodeError:
        return False
