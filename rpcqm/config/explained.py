"""What maps of URLs do, in words."""

from collections.abc import Iterator

from rpcqm.config.srmp_section import SrmpSection
from rpcqm.srmp.settings import Redirection


def explained_maps(section: SrmpSection) -> Iterator[str]:
    """A sentence for each map, in the order in which they are asked; the first that fits counts."""
    for each in section.inbound:
        yield f"What arrives for {_from(each)} is taken as sent to {_to(each)}."
    for text in section.outbound_exceptions:
        yield f"What is sent to {_beginning(text)} goes there directly."
    for each in section.outbound:
        yield f"What is sent to {_from(each)} goes through {each.to_url.rstrip('*')}."
    if section.proxy:
        yield f"What is sent elsewhere goes through the proxy {section.proxy}."
    for each in section.stream_receipt:
        yield f"Receipts for streams to {_from(each)} are wanted at {_to(each)}."
    if section.default_stream_receipt_url:
        yield f"Receipts for other streams are wanted at {section.default_stream_receipt_url}."


def _from(redirection: Redirection) -> str:
    return _beginning(redirection.from_url)


def _to(redirection: Redirection) -> str:
    """The place, or the beginning of it that the rest of a URL is put after."""
    to_url = redirection.to_url
    return f"{to_url[:-1]} and the same rest" if to_url.endswith("*") else to_url


def _beginning(text: str) -> str:
    return f"{text[:-1]} and whatever follows" if text.endswith("*") else text
