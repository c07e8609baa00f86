"""What an operator can set: names, defaults, checks, and where a value came from.

Every command reads its configuration, so this face has what that takes and no more. The check of
the files that a configuration names, and of directories, is in `rpcqm.config.checking`, a
configuration as the text of a file in `rpcqm.config.written`.
"""

from rpcqm.config.limits_section import LimitsSection
from rpcqm.config.load import check, load
from rpcqm.config.schema import (
    Configuration,
    LoggingSection,
    RemoteSection,
    SecuritySection,
    StorageSection,
)
from rpcqm.config.srmp_section import SrmpSection
from rpcqm.config.values import ConfigurationError

__all__ = [
    "Configuration",
    "ConfigurationError",
    "LimitsSection",
    "LoggingSection",
    "RemoteSection",
    "SecuritySection",
    "SrmpSection",
    "StorageSection",
    "check",
    "load",
]
