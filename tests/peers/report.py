"""A plugin of pytest: each test's name and outcome as a line of JSON in the file that TROUPE_REPORT names."""
import json
import os


def written(name, outcome, message=""):
    with open(os.environ["TROUPE_REPORT"], "a", encoding="utf-8") as file:
        file.write(json.dumps([name, outcome, message]) + "\n")


def last_line(report):
    if isinstance(report.longrepr, tuple):  # a skipped test: (file, line, why)
        return report.longrepr[2].removeprefix("Skipped: ")
    crash = getattr(report.longrepr, "reprcrash", None)
    return crash.message if crash else str(report.longrepr or "")


def pytest_collectreport(report):
    if report.outcome != "passed":
        written("", report.outcome, last_line(report))


def pytest_runtest_logreport(report):
    """A test has reports of its setup, its call and its teardown; those that are not of the call are written if they did not pass."""
    if report.when == "call" or report.outcome != "passed":
        expected = hasattr(report, "wasxfail") and report.outcome == "skipped"
        written(report.nodeid.partition("::")[2], "skipped" if expected else report.outcome, last_line(report))
