"""``python -m certgp`` is the command ``certgp``."""

import sys

from certgp.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
