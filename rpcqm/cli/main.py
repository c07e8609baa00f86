"""The `rpcqm` command: what a person types."""

import argparse
from importlib.metadata import version


def main(arguments: list[str] | None = None) -> int:
    """Run one command; the return value is the exit status."""
    parser = argparse.ArgumentParser(prog="rpcqm", description="An MSMQ-compatible queue manager.")
    parser.add_argument("--version", action="version", version=f"rpcqm {version('rpcqm')}")
    parser.parse_args(arguments)
    parser.print_help()
    return 2
