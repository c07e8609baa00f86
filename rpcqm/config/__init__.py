"""What an operator can set: names, defaults, checks, and where a value came from."""

from rpcqm.config.check import check_file
from rpcqm.config.load import ConfigurationError, check, load
from rpcqm.config.schema import Configuration, Limits, Logging, Remote, Security, Storage

__all__ = [
    "Configuration",
    "ConfigurationError",
    "Limits",
    "Logging",
    "Remote",
    "Security",
    "Storage",
    "check",
    "check_file",
    "load",
]
