"""A pytest plugin that writes the recorded properties of each test, and whether it passed.

python -m pytest -p validation.tools.capability.plugin --capability-report FILE
"""

import json
from pathlib import Path

import pytest

PROPERTY = "capability"


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("capability")
    group.addoption("--capability-report", metavar="FILE", help="what the tests recorded, as JSON")


def pytest_configure(config: pytest.Config) -> None:
    path = config.getoption("--capability-report")
    if path is not None:
        config.pluginmanager.register(Recorder(Path(path)))


class Recorder:
    """The outcome of each test, over its setup, call and teardown."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._outcomes: dict[str, list[str]] = {}
        self._recorded: dict[str, dict[str, None]] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        # Here an expected failure counts as a failure.
        outcome = "failed" if hasattr(report, "wasxfail") else report.outcome
        self._outcomes.setdefault(report.nodeid, []).append(outcome)
        found = dict.fromkeys(str(v) for name, v in report.user_properties if name == PROPERTY)
        self._recorded.setdefault(report.nodeid, {}).update(found)

    def pytest_sessionfinish(self) -> None:
        tests = []
        for test, recorded in self._recorded.items():
            outcomes = self._outcomes[test]
            worst = next((o for o in ("failed", "skipped") if o in outcomes), "passed")
            if recorded:
                tests.append({"test": test, "outcome": worst, "capabilities": list(recorded)})
        text = json.dumps({"tests": tests}, indent=1) + "\n"
        self._path.write_text(text, encoding="utf-8")
