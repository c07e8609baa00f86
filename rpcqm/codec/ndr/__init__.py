"""NDR and NDR64: codecs compiled from the trees of IDL files."""
