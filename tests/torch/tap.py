# SPDX-License-Identifier: MIT
"""TAP for scripts/test, from the reports of pytest."""


class Tap:
    """One line of TAP for each test; a failure is followed by the first lines of its reason."""

    def __init__(self, path):
        self.file = open(path, "w", encoding="utf-8")

    def result(self, ok, name, remark="", text=""):
        print(f"{ok} - {name}{remark}", file=self.file)
        for line in text.splitlines()[:5]:
            print(f"#   {line}", file=self.file)
        self.file.flush()

    @staticmethod
    def reason(report):
        """The exception's text, without the traceback."""
        crash = getattr(report.longrepr, "reprcrash", None)
        return crash.message if crash else report.longreprtext

    def pytest_runtest_logreport(self, report):
        name = report.nodeid.replace("#", "")
        if report.failed:
            when = "" if report.when == "call" else f" ({report.when})"
            self.result("not ok", name + when, text=self.reason(report))
        elif report.skipped:
            reason = getattr(report, "wasxfail", None)
            if reason is None:
                reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else ""
            reason = " ".join(str(reason).split())
            self.result("ok", name, f" # SKIP {reason.removeprefix('Skipped: ')}")
        elif report.when == "call":
            self.result("ok", name)

    def pytest_collectreport(self, report):
        if report.failed:
            self.result("not ok", report.nodeid or "collection", text=report.longreprtext)

    def pytest_sessionfinish(self):
        self.file.close()
