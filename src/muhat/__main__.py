"""``python -m muhat`` is the command ``muhat``."""

from muhat.cli import main

main()
