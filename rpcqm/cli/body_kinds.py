"""The kinds of `rpcqm.codec.bodies.kinds`, which takes time to load."""

PLAIN_KINDS = (
    *("text", "xml", "json", "bytes", "int", "long", "double", "bool", "date", "currency"),
    *("guid", "null"),
)
"""All but those of XmlMessageFormatter."""
