# SPDX-License-Identifier: MIT
"""Clients of hwmon that know nothing of the card read what sysfs has: lm-sensors, node_exporter.

Prints TAP. A client that is not installed is skipped.
"""

import glob
import os
import re
import shutil
import stat
import subprocess
import sys

sys.path.insert(1, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../unit"))
import node_exporter

#: Attributes in sysfs, their scale, and their names in node_exporter.
ATTRIBUTES = {
    "temp1_input": (1e3, "node_hwmon_temp_celsius"),
    "power1_average": (1e6, "node_hwmon_power_average_watt"),
    "power1_cap": (1e6, "node_hwmon_power_cap_watt"),
    "energy1_input": (1e6, "node_hwmon_energy_joule_total"),
}
#: sensors prints three digits.
DIGIT = 0.0011


def chips():
    """The folders of the cards' sensors by the cards' addresses."""
    found = {}
    for folder in sorted(glob.glob("/sys/class/hwmon/hwmon*")):
        with open(folder + "/name", encoding="ascii") as file:
            if file.read() == "spyre\n":
                found[os.path.basename(os.path.realpath(folder + "/device"))] = folder
    return found


def readable(path):
    """False where only root may read, which is so for energy: it tells too much about others."""
    return bool(os.stat(path).st_mode & stat.S_IROTH) or os.geteuid() == 0


def values(folder):
    """The attributes that this user may read."""
    found = {}
    for name, (scale, _) in ATTRIBUTES.items():
        if readable(f"{folder}/{name}"):
            with open(f"{folder}/{name}", encoding="ascii") as file:
                found[name] = int(file.read()) / scale
    return found


def by_sensors():
    """The values that sensors prints by card; cards have no names there, but an order."""
    done = subprocess.run(["sensors", "-u", "spyre-*"], capture_output=True, text=True, check=True)
    blocks = re.split(r"^spyre-.*\n", done.stdout, flags=re.MULTILINE)[1:]
    lines = [re.findall(r"^ +(\w+): ([-\d.]+)$", block, re.MULTILINE) for block in blocks]
    cards = [{name: float(value) for name, value in block} for block in lines]
    return dict(zip(chips(), cards, strict=True))


def by_node_exporter():
    text = node_exporter.metrics("--collector.hwmon")
    cards = {}
    for name, (_, metric) in ATTRIBUTES.items():
        for chip, value in re.findall(metric + r'{chip="platform_(\w+)",.*} (\S+)', text):
            cards.setdefault(re.sub(r"_(\d+)$", r".\1", chip), {})[name] = float(value)
    return cards


def check(client, read):
    """A value lies between those before and after, since a card cools down, and uses energy."""
    if not shutil.which(client):
        print(f"ok - {client} # SKIP it is not installed (scripts/deps vm)")
        return
    before = {card: values(folder) for card, folder in chips().items()}
    have = read()
    after = {card: values(folder) for card, folder in chips().items()}
    for card, first in before.items():
        for name in ATTRIBUTES:
            value = have.get(card, {}).get(name)
            if name in first:
                low, high = sorted((first[name], after[card][name]))
                right = value is not None and low - DIGIT <= value <= high + DIGIT
                wanted = f"{low} to {high}"
            else:
                right, wanted = value is None, "no value for this user"
            print(f"{'ok' if right else 'not ok'} - {client}: {name} of {card} is {value}")
            if not right:
                print(f"# sysfs has {wanted}")


if chips():
    check("sensors", by_sensors)
    check(node_exporter.COMMAND, by_node_exporter)
else:
    print("not ok - there is no hwmon device named spyre")
