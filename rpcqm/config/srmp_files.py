"""The files that the table [srmp] names: certificates and keys."""

import ssl
from typing import NamedTuple

from rpcqm.config.srmp_section import SrmpSection
from rpcqm.config.values import ConfigurationError, Mistake
from rpcqm.http.tls import TlsFileError, client_context, server_context


class SrmpContexts(NamedTuple):
    """TLS both ways; `server` is None without a certificate."""

    server: ssl.SSLContext | None
    client: ssl.SSLContext


def read_srmp_files(section: SrmpSection) -> SrmpContexts:
    """The contexts that the files make; raises ConfigurationError with every mistake."""
    mistakes: list[Mistake] = []
    server = client = None
    try:
        if section.certificate is not None and section.key is not None:
            server = server_context(section.certificate, section.key)
    except TlsFileError as error:
        mistakes.append(Mistake("srmp.certificate", f"{error}."))
    try:
        client = client_context(section.verify)
    except TlsFileError as error:
        mistakes.append(Mistake("srmp.verify", f"{error}."))
    if mistakes or client is None:
        raise ConfigurationError(mistakes)
    return SrmpContexts(server, client)
