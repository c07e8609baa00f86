"""Extensions of messages, in which NServiceBus and Rebus keep the headers of a message (G503).

NServiceBus writes a list of its HeaderInfo by XmlSerializer, Rebus an object of JSON.
"""

import base64
import contextlib
import re
import xml.etree.ElementTree as ElementTree

from rpcqm.base.errors import DecodeError
from rpcqm.codec.bodies.budget import DecodeBudget, told_size
from rpcqm.codec.bodies.guessed_text import WINDOWS, guessed_text
from rpcqm.codec.bodies.kinds import JSON, ReadBody, read_body
from rpcqm.codec.bodies.xml_documents import read_document

Headers = dict[str, str | None]

_CONTROLS = re.compile(r"[\0-\x08\x0b\x0c\x0e-\x1f\x7f]")
_NIL = "{http://www.w3.org/2001/XMLSchema-instance}nil"


def described_extension(extension: bytes, longest: int, budget: DecodeBudget) -> dict[str, object]:
    """An extension for programs: its octets, its text if it is text, and the headers in it.

    One of more than `longest` octets is given as octets alone, and so is one whose text and headers
    would exceed its budget.
    """
    told: dict[str, object] = {"extension_base64": base64.b64encode(extension).decode()}
    text = text_of_extension(extension) if len(extension) <= longest else None
    if text is None:
        return told
    more: dict[str, object] = {"extension": text}
    size = told_size(text)
    with contextlib.suppress(DecodeError):  # it only begins like headers, or exceeds the budget
        headers = headers_in(extension, budget)
        if headers is not None:
            more["headers"] = headers
            size += sum(told_size(f"{name}{value}") for name, value in headers.items())
    return told if size > budget.octets else told | more


def text_of_extension(extension: bytes) -> str | None:
    """UTF-8 or UTF-16 without control characters, and without nulls at its end; else None."""
    try:
        text = extension.decode("utf-8-sig").rstrip("\0")
    except UnicodeDecodeError:
        text = "\0"
    if not _CONTROLS.search(text):
        return text
    guess = guessed_text(extension)
    return None if guess is None or guess.encoding == WINDOWS else guess.text


def headers_in(extension: bytes, budget: DecodeBudget) -> Headers | None:
    """The headers in an extension, None if it has another form; spends of a budget.

    Raises DecodeError for a document that cannot be read, or not within the budget.
    """
    first = extension.lstrip(b"\xef\xbb\xbf\xff\xfe \t\r\n\0")[:1]
    if first == b"<":
        return _headers_of_xml(read_document(extension, budget).root)
    return _headers_of_json(read_body(extension, 0, budget)) if first == b"{" else None


def _headers_of_json(read: ReadBody) -> Headers | None:
    if read.kind != JSON or not isinstance(read.value, dict):
        return None
    values = read.value.values()
    return read.value if all(each is None or isinstance(each, str) for each in values) else None


def _headers_of_xml(root: ElementTree.Element) -> Headers | None:
    if _name(root) != "ArrayOfHeaderInfo":
        return None
    headers: Headers = {}
    for entry in root:
        parts = {_name(part): part for part in entry}
        key, value = parts.get("Key"), parts.get("Value")
        if _name(entry) != "HeaderInfo" or key is None or not key.text:
            return None
        if value is None or value.get(_NIL) in ("true", "1"):
            headers[key.text] = None
        else:
            headers[key.text] = value.text or ""
    return headers


def _name(element: ElementTree.Element) -> str:
    return element.tag.rpartition("}")[2]
