"""Accounts for tests of authentication."""

from pathlib import Path

from rpcqm.base.identity import Identity, authenticated

PASSWORD = "Passw0rd!"
NT_HASH = "FC525C9683E8FE067095BA2DDC971889"
"""MD4 of the password in UTF-16."""


class TestAccounts:
    """An account directory over a file with alice, and bob who may not log on."""

    __test__ = False

    def __init__(self, directory: Path) -> None:
        self.user_file = directory / "accounts"
        self.user_file.write_text(
            f"alice:1000:{'0' * 32}:{NT_HASH}:[U          ]:LCT-00000000\n"
            + f"bob:1001:{'0' * 32}:{NT_HASH}:[UD         ]:LCT-00000000\n"
            + f"CORP\\carol:1002:{'0' * 32}:{NT_HASH}:[U          ]:LCT-00000000\n"
        )

    def identity(self, name: str, domain: str) -> Identity | None:
        rids = {"alice": 1000, "carol": 1002}
        if name.lower() not in rids:
            return None
        return authenticated(name.lower(), f"S-1-5-21-1-2-3-{rids[name.lower()]}")
