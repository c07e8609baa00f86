"""`rpcqm console`: the operator's pages, logged on."""

import argparse
import html
import os
import stat
import sys
import tempfile
import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING

from rpcqm.cli.errors import CommandError
from rpcqm.cli.options import add_local_options
from rpcqm.cli.parser import Parser, add_command
from rpcqm.cli.session import with_server

if TYPE_CHECKING:
    from rpcqm.client.queue_manager import QueueManagerClient

DETAILS = """\
A file in your runtime directory, which only you can read, holds a token that is good for one logon
within a minute; the browser is given the path of that file and nothing secret. For root, the queue
manager's own user, and accounts of the group administrators."""

_FORM = """<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>rpcqm</title></head>
<body>
<form method="post" action="{page}">
<input type="hidden" name="logon" value="{token}">
<button>Log on to rpcqm</button>
</form>
<script>document.forms[0].submit();</script>
</body>
</html>
"""


def add(commands: "argparse._SubParsersAction[Parser]") -> None:
    """Add the command to the parser."""
    parser = add_command(
        commands,
        "console",
        "Open the operator's pages in a browser, logged on without a password.",
        [
            ("rpcqm console", "opens the browser"),
            ("rpcqm console --no-open", "prints the path of the file that logs on"),
        ],
        run,
        DETAILS,
    )
    parser.add_argument(
        "--no-open", action="store_true", help="print the path of the file, and open nothing"
    )
    add_local_options(parser)


def run(arguments: argparse.Namespace) -> int:
    """Write the file, and open it."""

    async def work(client: "QueueManagerClient") -> None:
        token, page = await client.accounts.create_logon()
        if not page:
            raise CommandError(
                "This queue manager serves no pages on this machine: see `console_port` and the "
                "table [console] of its configuration."
            )
        path = write_form(token, page)
        if not arguments.no_open:
            if webbrowser.open(path.as_uri()):
                return
            print("There is no browser to open; open this file within a minute:", file=sys.stderr)
        print(path)

    return with_server(arguments, "open the console", work, administrators_only=True)


def write_form(token: str, page: str) -> Path:
    """A file that only the caller can read, and that logs on when a browser opens it."""
    path = _directory() / f"rpcqm-console-{os.getpid()}.html"
    try:
        path.unlink(missing_ok=True)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(_FORM.format(page=html.escape(page), token=html.escape(token)))
    except OSError as error:
        raise CommandError(f"Cannot write {path}: {error.strerror}.") from error
    return path


def _directory() -> Path:
    """The caller's runtime directory where that is private, else a new one."""
    given = Path(os.environ.get("XDG_RUNTIME_DIR", ""))
    try:
        status = given.stat()
    except OSError:
        return Path(tempfile.mkdtemp(prefix="rpcqm-"))
    private = status.st_uid == os.getuid() and not stat.S_IMODE(status.st_mode) & 0o077
    if given.is_absolute() and private and stat.S_ISDIR(status.st_mode):
        return given
    return Path(tempfile.mkdtemp(prefix="rpcqm-"))
