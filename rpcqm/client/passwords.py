"""The hash of a password, which is what a queue manager keeps."""


def nt_hash(password: str) -> bytes:
    """MD4 of the text in UTF-16 ([MS-NLMP] 3.3.1)."""
    # Only here: the library of hashes takes longer to load than the rest of `rpcqm user list`.
    from rpcqm.codec.security import passwords

    return passwords.nt_hash(password)
