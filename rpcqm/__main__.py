"""`python -m rpcqm` is the `rpcqm` command."""

import sys

from rpcqm.cli.main import main

sys.exit(main())
