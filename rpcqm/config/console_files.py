"""The files that the table [console] names: a certificate and its key."""

from typing import TYPE_CHECKING

from rpcqm.config.console_section import ConsoleSection
from rpcqm.config.values import ConfigurationError, Mistake

if TYPE_CHECKING:
    from rpcqm.http.tls import ServerContext


def read_console_files(section: ConsoleSection) -> "ServerContext | None":
    """What TLS needs, None without a certificate; raises ConfigurationError."""
    certificate, key = section.certificate, section.key
    if certificate is None or key is None:
        return None
    from rpcqm.http.tls import TlsFileError, server_context  # the module ssl takes time to load

    try:
        return server_context(certificate, key)
    except TlsFileError as error:
        setting = "console.key" if error.path == key else "console.certificate"
        raise ConfigurationError([Mistake(setting, f"{error}.")]) from error
