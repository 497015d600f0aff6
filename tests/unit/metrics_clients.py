# SPDX-License-Identifier: MIT
"""Clients of other projects read the metrics that spyre-smi wrote to a file.

usage: metrics_clients.py parser|node_exporter FOLDER

FOLDER has spyre.prom of `spyre-smi --prometheus`, and of the same cards cards.json and apps.json of
--query-device and --query-compute-apps. Ends with an error if a client reads anything else.
"""

import json
import os
import sys

import node_exporter
from prometheus_client.parser import text_string_to_metric_families

#: Fields of --query-device and the metrics that have the same numbers in the same units.
FIELDS = {
    "power_draw_watts": "spyre_power_watts",
    "temperature_celsius": "spyre_temperature_celsius",
    "memory_used_bytes": "spyre_memory_used_bytes",
    "energy_joules_total": "spyre_energy_joules",
    "launches_total": "spyre_launches",
    "macs_total": "spyre_macs",
}


def families(text):
    found = {family.name: family for family in text_string_to_metric_families(text)}
    assert found, "there are no metrics"
    return found


def samples(found):
    """The values by name and labels; Prometheus has no sample twice."""
    values = {}
    for family in found.values():
        for sample in family.samples:
            key = sample.name, tuple(sorted(sample.labels.items()))
            assert key not in values, f"{key} is there twice"
            values[key] = sample.value
    return values


def rows(folder, name, key):
    with open(os.path.join(folder, name), encoding="utf-8") as file:
        return json.load(file)[key]


def check_parser(text, folder):
    found = families(text)
    for family in found.values():
        assert family.type in ("gauge", "counter"), f"{family.name} has the type {family.type}"
        assert family.documentation, f"{family.name} has no help"
        assert family.samples, f"{family.name} has no sample"
    samples(found)
    for field, name in FIELDS.items():
        have = [sample.value for sample in found[name].samples]
        want = [float(card[field]) for card in rows(folder, "cards.json", "devices")]
        assert have == want, f"{name} is {have}, {field} is {want}"
    have = {(s.labels["pid"], s.labels["process"]) for s in found["spyre_process_memory_bytes"].samples}
    want = {(str(app["pid"]), app["process_name"]) for app in rows(folder, "apps.json", "processes")}
    assert have == want, f"the processes are {have} instead of {want}"


def check_node_exporter(text, folder):
    """Its collector of text files serves each sample as it is, and reports no error."""
    options = "--collector.textfile", f"--collector.textfile.directory={folder}"
    served = samples(families(node_exporter.metrics(*options)))
    assert served["node_textfile_scrape_error", ()] == 0
    for key, value in samples(families(text)).items():
        assert served.get(key) == value, f"{key} is {value} in the file, {served.get(key)} served"


def main():
    client, folder = sys.argv[1:]
    with open(os.path.join(folder, "spyre.prom"), encoding="utf-8") as file:
        text = file.read()
    check = {"parser": check_parser, "node_exporter": check_node_exporter}[client]
    check(text, folder)


main()
