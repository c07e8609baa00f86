"""What the data sources cannot do, each as one sentence, also behind Spark's own reports."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

from rpcqm.base.errors import DecodeError, MQError, RpcFault


class SourceError(RuntimeError):
    """A data source cannot do what it is asked to do; the text is one sentence."""


class DataLossError(SourceError):
    """Messages of a planned batch are gone before it was read."""


class CheckpointError(SourceError):
    """A checkpoint belongs to another queue."""


_TOLD = re.compile(rf"^{re.escape(__name__)}\.\w+: (.+)$", re.MULTILINE)
"""The last line of a traceback of ours."""


def sentence_of(error: BaseException) -> str | None:
    """The sentence of a SourceError of a worker, which Spark shows inside a report of its own."""
    found = _TOLD.findall(str(error))
    return str(found[-1]) if found else None


@contextmanager
def in_a_sentence(subject: str) -> Iterator[None]:
    """Make a SourceError of what a queue manager refuses, and of one that is not reached."""
    # Only now, because not all processes of Spark need it.
    from rpcqm.client.target import ServerUnreachableError

    try:
        yield
    except (MQError, RpcFault, DecodeError, ServerUnreachableError) as error:
        why = " ".join(str(error).split()).rstrip(".")
        raise SourceError(f"{subject}: {why}.") from None
