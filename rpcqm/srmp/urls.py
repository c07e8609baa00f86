"""URLs of queues ([MC-MQSRM] 2.2.4.2), and format names as URIs."""

from urllib.parse import quote, urlsplit

from rpcqm.codec.names.format_name import FormatName
from rpcqm.srmp.elements import MSMQ_PREFIX

_DEFAULT_PORTS = {"http": 80, "https": 443}
_KEPT_IN_NAME = "$!'()*:@&=~"
_KEPT = "/$%!'()*,;:@&=+~?"
"""Characters that stay in a request line, so that encoded ones are not encoded twice."""


def to_uri(name: FormatName) -> str:
    """A name as a URI: the URL of an HTTP name, with a small scheme; `MSMQ:` before any other.

    Source: [MC-MQSRM] 2.2.4.2, 2.2.4.4, G46, G220.
    """
    if not isinstance(name.value, str) or not name.is_http:
        return f"{MSMQ_PREFIX}{name}"
    scheme, _, rest = name.value.partition(":")
    return f"{scheme.lower()}:{rest}".replace("\\", "/")


def queue_url(scheme: str, host: str, port: int, queue: str) -> str:
    r"""The URL of a queue here, like `private$\orders`; a usual port is not written (G220)."""
    place = host if port == _DEFAULT_PORTS[scheme] else f"{host}:{port}"
    path = "/".join(quote(part, safe=_KEPT_IN_NAME) for part in queue.split("\\"))
    return f"{scheme}://{place}/msmq/{path}"


def request_pattern(pattern: str) -> str:
    """A URL of the configuration, or a beginning with `*`, as `request_url` writes it."""
    return quote(pattern, safe=f"{_KEPT}[]")


def request_url(uri: str) -> str:
    """The URL to post to, in ASCII."""
    parts = urlsplit(uri, allow_fragments=False)  # a `#` belongs to the queue's name
    query = f"?{quote(parts.query, safe=_KEPT)}" if parts.query else ""
    return f"{parts.scheme}://{parts.netloc}{quote(parts.path, safe=_KEPT)}{query}"
