"""What is kept of a password."""

from Cryptodome.Hash import MD4


def nt_hash(password: str) -> bytes:
    """What NTLM proves knowledge of: NTOWFv1 of [MS-NLMP] 3.3.1, 16 octets."""
    return MD4.new(password.encode("utf-16-le")).digest()
