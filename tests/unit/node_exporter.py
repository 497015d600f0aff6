# SPDX-License-Identifier: MIT
"""Runs node_exporter on a free port of loopback, with the collectors that a test names."""

import re
import subprocess
import urllib.request

COMMAND = "prometheus-node-exporter"


def address_of(exporter):
    """The port that the system gave to it, from the message that it prints once it listens."""
    printed = []
    for line in exporter.stderr:
        printed.append(line)
        found = re.search(r"Listening on.* address=(\S+)", line)
        if found:
            return found[1]
    raise AssertionError(f"it does not listen: {''.join(printed)}")


def metrics(*options):
    """Returns the page that it serves."""
    command = [COMMAND, "--collector.disable-defaults", *options, "--web.listen-address=127.0.0.1:0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as exporter:
        try:
            with urllib.request.urlopen(f"http://{address_of(exporter)}/metrics", timeout=120) as page:
                return page.read().decode()
        finally:
            exporter.terminate()
