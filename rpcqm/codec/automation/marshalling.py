"""The functions that generated codecs call for BSTR, VARIANT, SAFEARRAY and interface pointers."""

from rpcqm.codec.automation.strings import bstr_reader, bstr_writer, objref_reader, objref_writer
from rpcqm.codec.automation.values import EMPTY
from rpcqm.codec.automation.variants import Marshaller


def functions(ndr64: bool, big_endian: bool) -> dict[str, object]:
    """The functions by their names in generated code."""
    marshaller = Marshaller(ndr64, big_endian)
    return {
        "EMPTY": EMPTY,
        "read_BSTR": bstr_reader(ndr64),
        "read_OBJREF": objref_reader(ndr64, big_endian),
        "read_SAFEARRAY": marshaller.read_array,
        "read_VARIANT": marshaller.read_variant,
        "write_BSTR": bstr_writer(ndr64),
        "write_OBJREF": objref_writer(ndr64, big_endian),
        "write_SAFEARRAY": marshaller.write_array,
        "write_VARIANT": marshaller.write_variant,
    }
