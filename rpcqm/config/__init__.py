"""What an operator can set: names, defaults, checks, and where a value came from."""

from rpcqm.config.check import check_file
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
from rpcqm.config.written import named_files, written

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
    "check_file",
    "load",
    "named_files",
    "written",
]
