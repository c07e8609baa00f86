"""The hash of a password, which is what a queue manager keeps."""

from Cryptodome.Hash import MD4


def nt_hash(password: str) -> bytes:
    """NTOWFv1 ([MS-NLMP] 3.3.1): what NTLM proves knowledge of, 16 octets."""
    return MD4.new(password.encode("utf-16-le", "surrogatepass")).digest()
