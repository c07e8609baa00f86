"""What names mean without a directory ([MS-MQDMPR] 3.1.7.1.26, 3.1.7.3.8).

There is none yet: names that only a directory can resolve are refused, except our own.
"""

from typing import TYPE_CHECKING
from uuid import UUID

from rpcqm.base.errors import HResult, MQError
from rpcqm.codec.format_name import FormatName, FormatNameType, PrivateQueueFormatName

if TYPE_CHECKING:
    from rpcqm.qm.engine import QueueManagerEngine


class Directory:
    """Resolves names."""

    def __init__(self, engine: "QueueManagerEngine") -> None:
        self._engine = engine

    def get_queue_path(self, format_name: FormatName) -> tuple[str, str]:
        """The path name of a queue, or "" when only its machine is known, and the machine.

        MQ_ERROR_ILLEGAL_FORMATNAME for names that cannot be resolved.
        Source: [MS-MQDMPR] 3.1.7.1.26.
        """
        value = format_name.value
        if isinstance(value, str):
            return str(format_name.path_name), format_name.direct_name.host
        if isinstance(value, PrivateQueueFormatName):
            self._require_own(value.source_queue_manager, format_name)
        elif format_name.type is not FormatNameType.QUEUE_FORMAT_TYPE_PUBLIC:
            _refuse(format_name)
        queue = self._engine.queues.find_by_format_name(format_name)
        if queue is None and not isinstance(value, PrivateQueueFormatName):
            _refuse(format_name)
        return "" if queue is None else queue.pathname, self._engine.queue_manager.computer_name

    def _require_own(self, identifier: UUID, format_name: FormatName) -> None:
        if identifier != self._engine.queue_manager.identifier:
            _refuse(format_name)

    def expand_format_name(
        self, format_name: FormatName | tuple[FormatName, ...]
    ) -> tuple[FormatName, ...]:
        """The single names that a name stands for, each once, sorted without regard to case.

        MQ_ERROR_UNSUPPORTED_FORMATNAME_OPERATION for distribution lists, which need a directory.
        Source: [MS-MQDMPR] 3.1.7.3.8.
        """
        names = (format_name,) if isinstance(format_name, FormatName) else format_name
        for name in names:
            if name.type is FormatNameType.QUEUE_FORMAT_TYPE_DL:
                raise MQError(HResult.MQ_ERROR_UNSUPPORTED_FORMATNAME_OPERATION, str(name))
        if len(names) == 1:
            return names
        unique: dict[FormatName, None] = dict.fromkeys(
            sorted(names, key=lambda name: str(name).upper())
        )
        return tuple(unique)


def _refuse(format_name: FormatName) -> None:
    raise MQError(HResult.MQ_ERROR_ILLEGAL_FORMATNAME, str(format_name))
