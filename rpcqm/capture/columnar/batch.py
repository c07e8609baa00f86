"""Calls in columns: where the requests and answers of many calls are in a buffer."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from rpcqm.capture.columnar.record_batch import Array, Buffer
from rpcqm.capture.conversation.call import CapturedCall, Conversation
from rpcqm.capture.conversation.interfaces import Context

HEADER = 24
"""The octets of a request's or a response's PDU before its stub data."""


@dataclass(slots=True)
class CallBatch:
    """Whole calls in clear, each of one segment and answered by one.

    All arrays have an element for each call, in the order in which they were complete. `index`
    is the record that completed it in its batch; `request` and `response` are where the stub
    data begin in `buffer`, `fault` is -1 where the answer is no fault (else there is no
    response). `conversation` and `context` are indices of the lists.
    """

    buffer: Buffer
    conversations: list[Conversation]
    contexts: list[Context]
    index: Array
    conversation: Array
    context: Array
    call_id: Array
    opnum: Array
    time: Array
    offset: Array
    request: Array
    request_size: Array
    ended: Array
    response_offset: Array
    response: Array
    response_size: Array
    fault: Array

    def __len__(self) -> int:
        return len(self.index)

    def calls(self) -> Iterator[tuple[int, CapturedCall]]:
        """Each call by itself, with its index."""
        columns = (
            *(self.index, self.conversation, self.context, self.call_id, self.opnum),
            *(self.time, self.offset, self.request, self.request_size, self.ended),
            *(self.response_offset, self.response, self.response_size, self.fault),
        )
        conversations, contexts, buffer = self.conversations, self.contexts, self.buffer
        for row in zip(*(column.tolist() for column in columns), strict=True):
            index, conversation, context, call_id, opnum, time, offset, request, size = row[:9]
            ended, response_offset, response, response_size, fault = row[9:]
            owner = conversations[conversation]
            made = CapturedCall(owner, call_id, contexts[context], opnum, time, offset)
            made.request, made.request_size = buffer[request : request + size], size
            made.ended, made.response_offset = ended, response_offset
            if fault >= 0:
                made.fault = fault
            else:
                made.response = buffer[response : response + response_size]
                made.response_size = response_size
            yield index, made

    def call(self, position: int) -> CapturedCall:
        """One of the calls."""
        ((_, found),) = self.chosen(np.array([position])).calls()
        return found

    def chosen(self, rows: Array) -> "CallBatch":
        """Some of the calls."""
        names = [name for name in self.__slots__ if isinstance(getattr(self, name), np.ndarray)]
        parts = {name: getattr(self, name)[rows] for name in names}
        return CallBatch(self.buffer, self.conversations, self.contexts, **parts)
