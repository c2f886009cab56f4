"""Why tests were skipped, at the end of a run."""

from collections import Counter


def pytest_terminal_summary(terminalreporter):
    """One line for each reason. (pytest's own `-rs` has one for each test.)"""
    skipped = terminalreporter.stats.get("skipped", [])
    # Where it was skipped, and why.
    reasons = Counter(report.longrepr[-1].removeprefix("Skipped: ") for report in skipped)
    for reason, number in reasons.items():
        terminalreporter.write_line(f"{number} skipped. {reason}", yellow=True)
