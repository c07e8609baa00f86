"""What an operator can set: names, defaults, checks, and where a value came from."""

from rpcqm.config.load import ConfigurationError, check, load
from rpcqm.config.schema import Configuration, Logging, Security, Storage

__all__ = [
    "Configuration",
    "ConfigurationError",
    "Logging",
    "Security",
    "Storage",
    "check",
    "load",
]
