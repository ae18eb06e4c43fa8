"""``python -m muhat`` is the command ``muhat``."""

from muhat.cli import app, main
from muhat.paper._command import reproduce_command

app.command("reproduce")(reproduce_command)

if __name__ == "__main__":
    main()
