"""The errors of a data directory; each text is a sentence that an operator can act on."""


class StoreError(Exception):
    """The store cannot be used; the text is one sentence for the operator."""


class StoreLockedError(StoreError):
    """Another process has the data directory open."""


class StoreFormatError(StoreError):
    """The data directory is of a format that this version cannot use."""


class ReplicationError(StoreError):
    """The replicated log cannot be used, or does not belong to the data directory."""


class LogSilentError(ReplicationError):
    """The log's servers do not answer, or not as they should: later they may."""


class StoreStoppedError(StoreError):
    """The store is closed, or a write failed and its outcome is unknown."""


class PositionStateError(LookupError):
    """A position is in a state that does not allow the operation: an error of the caller."""
