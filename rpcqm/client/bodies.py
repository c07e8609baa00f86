"""Bodies as values, for programs: what the ActiveX and .NET formatters of MSMQ read and write."""

from rpcqm.codec.bodies.formatters import Value, decode_body, encode_body
from rpcqm.codec.bodies.xml_documents import parse_xml
from rpcqm.codec.bodies.xml_values import value_of_xml
from rpcqm.codec.bodies.xml_writing import encode_xml

__all__ = ["Value", "decode_body", "encode_body", "encode_xml", "parse_xml", "value_of_xml"]
