"""The messages of one connection that carries [MC-MQSRM]: requests over HTTP with their answers."""

from collections.abc import Callable
from dataclasses import dataclass, field
from http import HTTPStatus

from rpcqm.base.errors import DecodeError
from rpcqm.capture.conversation.call import MC_MQSRM, Conversation
from rpcqm.capture.conversation.http import HttpConversation, HttpMessage
from rpcqm.capture.conversation.srmp_bunch import apart
from rpcqm.capture.file.problems import Problems
from rpcqm.codec.layout import NULL_GUID
from rpcqm.codec.packet.types import MessageIdentifier
from rpcqm.http.exchange import HttpRequest
from rpcqm.srmp.elements import Envelope, MessageId, SrmpRequest
from rpcqm.srmp.message_types import identify
from rpcqm.srmp.reading import read_request

_MILLION = 1_000_000
_ACTION = "msmqmessage"
_BOUNDARY = "msmq - soap boundary"
_PATH = "/msmq/"
_NO_URL = "MSMQ:"
"""What stands before the name of a queue that has no URL, as those of groups."""
_KINDS = ("text/xml", "multipart/related")


def is_srmp(request: HttpMessage) -> bool:
    """Whether a request is one of [MC-MQSRM] 2.1.1, or would be one."""
    if request.first[0] != "POST":
        return False
    headers = {name.lower(): value.lower() for name, value in request.headers}
    content = headers.get("content-type", "")
    return (
        _ACTION in headers.get("soapaction", "")
        or _BOUNDARY in content
        or (_PATH in request.first[1].lower() and content.startswith(_KINDS))
    )


@dataclass(slots=True, eq=False, repr=False)
class SrmpExchange:
    """A request with its answer, None if it was not captured; the same face as a Call's."""

    conversation: Conversation
    asked: HttpMessage
    answer: HttpMessage | None
    note: str = field(default="", init=False)
    _decoded: SrmpRequest | None = field(default=None, init=False)
    _tried: bool = field(default=False, init=False)

    protocol = MC_MQSRM
    interface_name = MC_MQSRM
    opnum = None
    sealed = False

    def __post_init__(self) -> None:
        odd = self.answer.note if self.answer is not None else ""
        self.note = self.asked.note or (odd and f"its answer: {odd}")

    @property
    def time(self) -> int:
        """When its first octet came, in nanoseconds since 1970."""
        return self.asked.began

    @property
    def offset(self) -> int:
        return self.asked.offset

    @property
    def ended(self) -> int:
        """When its answer was complete; 0 without one."""
        return self.answer.ended if self.answer is not None else 0

    @property
    def duration_ms(self) -> float | None:
        return (self.ended - self.time) / _MILLION if self.ended else None

    @property
    def request_size(self) -> int:
        return self.asked.size

    @property
    def response_size(self) -> int:
        return self.answer.size if self.answer is not None else 0

    @property
    def status(self) -> int | None:
        """The status of its answer."""
        return self.answer.status if self.answer is not None else None

    @property
    def status_name(self) -> str | None:
        """The status with its name in RFC 9110, as `400 Bad Request`."""
        status = self.status
        if status is None:
            return None
        known = HTTPStatus._value2member_map_.get(status)
        return f"{status} {known.phrase}" if isinstance(known, HTTPStatus) else str(status)

    @property
    def name(self) -> str:
        """The kind of the message ([MC-MQSRM] 3.1.5.1.5), or the HTTP method of another request."""
        request = self.decoded_request()
        return kind_of(request.envelope) if request is not None else self.asked.first[0]

    @property
    def envelope(self) -> Envelope | None:
        request = self.decoded_request()
        return request.envelope if request is not None else None

    def decoded_request(self) -> SrmpRequest | None:
        """The message; None if it cannot be read, and `note` says why."""
        if not self._tried:
            self._tried = True
            self._decoded = self._read()
        return self._decoded

    def _read(self) -> SrmpRequest | None:
        if not self.asked.whole:
            return None
        try:
            return read_request(self.http_request)
        except DecodeError as error:
            self.note = f"it is no message: {error}"
            return None

    @property
    def http_request(self) -> HttpRequest:
        """The request as a server sees it."""
        host, _, port = self.conversation.client.rpartition(":")
        method, target, _ = self.asked.first
        number = int(self.conversation.server.rpartition(":")[2] or port)
        body = bytes(self.asked.body)
        return HttpRequest(method, target, self.asked.headers, body, host, False, number)

    def decoded_response(self) -> None:
        """Answers have a status, and nothing to decode."""

    @property
    def identifiers(self) -> list[str]:
        r"""Its message's identifier and those that its receipts are about, as `{guid}\number`."""
        envelope = self.envelope
        if envelope is None:
            return []
        receipts = (envelope.delivery_receipt, envelope.commitment_receipt)
        told = [_identifier(each.id) for each in receipts if each is not None]
        return list(dict.fromkeys([_own_identifier(envelope), *told]))

    @property
    def queue(self) -> str:
        """The format name of the queue that it is for; empty if it is not known."""
        envelope = self.envelope
        if envelope is None:
            return ""
        multicast = envelope.to.removeprefix(_NO_URL)
        return f"DIRECT={envelope.to}" if multicast == envelope.to else multicast


def kind_of(envelope: Envelope) -> str:
    """The kind of a message ([MC-MQSRM] 3.1.5.1.5) in the words of the text."""
    kind = identify(envelope)
    return "Unidentified" if kind is None else kind.value.title().replace(" ", "")


def _own_identifier(envelope: Envelope) -> str:
    """What the message is called in queues: its number at the queue manager that it names."""
    source = envelope.msmq.source_qm_guid if envelope.msmq is not None else NULL_GUID
    number = envelope.id.ordinal
    return _identifier(MessageId(source, number) if source != NULL_GUID else envelope.id)


def _identifier(given: MessageId) -> str:
    return str(MessageIdentifier(given.guid, given.ordinal))


class SrmpConversation:
    """Both sides of one connection that carries HTTP.

    Once a request is one of [MC-MQSRM], `open_conversation` is asked for the conversation, and all
    of its requests are handed on; HTTP that carries something else makes none.
    """

    def __init__(
        self,
        open_conversation: Callable[[int], Conversation],
        problems: Problems,
        emit: Callable[[SrmpExchange], None],
    ) -> None:
        self._open = open_conversation
        self._problems = problems
        self._emit = emit
        self._conversation: Conversation | None = None
        http = HttpConversation(self._wanted, self._take, self._complain)
        self.http = http

    def _wanted(self, request: HttpMessage) -> bool:
        if self._conversation is None and is_srmp(request):
            self._conversation = self._open(request.began)
        return self._conversation is not None

    def _take(self, request: HttpMessage, answer: HttpMessage | None) -> None:
        if self._conversation is not None:
            for asked, answered in apart(request, answer):
                self._emit(SrmpExchange(self._conversation, asked, answered))

    def _complain(self, offset: int, reason: str) -> None:
        if self._conversation is not None:
            self._problems.add("http", offset, reason)
