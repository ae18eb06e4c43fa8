"""``python -m paper``: reproduce the paper's figures and tables, from a clone."""

import sys

from paper._command import main

if __name__ == "__main__":
    sys.exit(main())
