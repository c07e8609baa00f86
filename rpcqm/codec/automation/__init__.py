"""Values of automation ([MS-OAUT]): BSTR, VARIANT and SAFEARRAY, from their IDL to Python."""
