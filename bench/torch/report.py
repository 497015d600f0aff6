# SPDX-License-Identifier: MIT
"""Rows of scripts/bench torch: the table, and JSON of the form that bench/report.c writes."""

import datetime
import json
import os
import platform
import statistics


class Report:
    def __init__(self):
        self.rows = []

    def add(self, name, unit, ours, peers, peer, better="lower", aim=None, note=None):
        """@ours and @peers: samples of both; ratio is ours to the peer's, of medians."""
        pick = min if better == "lower" else max
        value, peer_value = statistics.median(ours), statistics.median(peers)
        row = {
            "name": name,
            "unit": unit,
            "better": better,
            "value": value,
            "peer": peer,
            "peer_value": peer_value,
            "best": pick(ours),
            "peer_best": pick(peers),
            "ratio": value / peer_value if peer_value else None,
            "aim": aim,
            "samples": len(ours),
        }
        if note:
            row["note"] = note
        self.rows.append(row)
        return row

    def include(self, path):
        """Appends the rows that spyre-bench --json wrote."""
        with open(path, encoding="utf-8") as file:
            self.rows += json.load(file)["results"]

    def print(self):
        columns = "{:<40} {:>9} {:>9}  {:<12} {:>6} {:>8}  {:<9} {}"
        print(machine())
        print(columns.format("benchmark", "spyre", "peer", "unit", "ratio", "at best", "aim", "peer is"))
        for row in self.rows:
            ratio = "" if row["ratio"] is None else f"{row['ratio']:.2f}"
            best = "" if row["ratio"] is None else f"{row['best'] / row['peer_best']:.2f}"
            print(
                columns.format(
                    row["name"],
                    f"{row['value']:.2f}",
                    f"{row['peer_value']:.2f}" if row["peer_value"] else "",
                    row["unit"],
                    ratio,
                    best,
                    aim_text(row),
                    row["peer"] + (f"; {row['note']}" if row.get("note") else ""),
                ).rstrip()
            )

    def write(self, path):
        document = {
            "schema_version": 1,
            "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "machine": machine(),
            "threads": os.cpu_count(),
            "results": self.rows,
        }
        with open(path, "w", encoding="utf-8") as file:
            json.dump(document, file, indent=4)
            file.write("\n")


def aim_text(row):
    if not row["aim"]:
        return ""
    of_value = row.get("aim_of") == "value"
    found = row["value"] if of_value else row["ratio"]
    sign = "<=" if row["better"] == "lower" else ">="
    met = found <= row["aim"] if row["better"] == "lower" else found >= row["aim"]
    return f"{sign} {row['aim']:.3g}{row['unit'] if of_value else ''}{'' if met else ' !'}"


def machine():
    import torch

    model = "unknown CPU"
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        for line in file:
            if line.startswith("model name"):
                model = line.split(":", 1)[1].strip()
                break
    return f"{model}, {os.cpu_count()} CPUs, {platform.system()} {platform.release()}, torch {torch.__version__}"
