"""Why a queue manager could not be started."""


class StartError(Exception):
    """The text is one sentence for the operator."""
