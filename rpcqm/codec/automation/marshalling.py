"""The functions that generated codecs call for BSTR, VARIANT, SAFEARRAY and interface pointers."""

from rpcqm.codec.automation.strings import bstr_reader, bstr_writer, objref_reader, objref_writer
from rpcqm.codec.automation.values import EMPTY


def functions(ndr64: bool, big_endian: bool) -> dict[str, object]:
    """The functions by the names that generated code has for them."""
    return {
        "EMPTY": EMPTY,
        "read_BSTR": bstr_reader(ndr64),
        "read_OBJREF": objref_reader(ndr64, big_endian),
        "write_BSTR": bstr_writer(ndr64),
        "write_OBJREF": objref_writer(ndr64, big_endian),
    }
