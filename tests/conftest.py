"""What is said after all tests."""

import browser

skipped = []


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
