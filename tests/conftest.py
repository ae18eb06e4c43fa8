"""The wheel that several files install from, and what is said after all tests."""

import pytest

import browser
from built import build

skipped = []


@pytest.fixture(scope="session")
def wheel(tmp_path_factory):
    return build("wheel", tmp_path_factory.mktemp("wheel"))


def pytest_terminal_summary(terminalreporter):
    skipped.extend(
        report
        for report in terminalreporter.stats.get("skipped", ())
        if browser.MISSING in str(report.longrepr)
    )


def pytest_unconfigure(config):
    """Say, below everything else, that a part was not tested."""
    if skipped:
        print(f"{len(skipped)} tests of pages in a browser were skipped: {browser.MISSING}.")
