"""The line that shows on a terminal that a command has started."""

import io

from muhat.cli._command_line import clear_working, say, show_working


class Terminal(io.StringIO):
    """Standard error of somebody who looks at it."""

    def isatty(self):
        return True


def test_a_command_shows_at_once_that_it_has_begun(monkeypatch):
    screen = Terminal()
    monkeypatch.setattr("sys.stderr", screen)
    monkeypatch.setattr("sys.argv", ["muhat", "test", "a.csv"])
    show_working("test")
    assert screen.getvalue() == "muhat test …"
    say("no such file: a.csv.")
    assert screen.getvalue().endswith("\rmuhat: no such file: a.csv.\n")
    length = len(screen.getvalue())
    clear_working()
    assert len(screen.getvalue()) == length


def test_nothing_is_shown_of_that_in_a_file_or_beside_help_or_json(monkeypatch):
    for screen, arguments in (
        (io.StringIO(), ["muhat", "test"]),
        (Terminal(), ["muhat", "--help"]),
        (Terminal(), ["muhat", "test", "--json"]),
    ):
        monkeypatch.setattr("sys.stderr", screen)
        monkeypatch.setattr("sys.argv", arguments)
        show_working("test")
        assert screen.getvalue() == ""
