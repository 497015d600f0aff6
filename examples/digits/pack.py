#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""pack.py CSV digits.u8: the UCI digits as one compact file.

CSV (plain or .gz) has one image a line: 64 pixels of 0..16, then the label, as
the UCI repository's optdigits.tes and the digits.csv.gz in scikit-learn.

digits.u8, little endian:
    0   8 bytes  "SPYRDIG1"
    8   u32      images
    12  u16 u16  rows, columns of an image
    16  u8[images]                labels 0..9
    ..  u8[images][rows][columns] pixels 0..16
"""
import gzip
import struct
import sys


def main(source, target):
    opener = gzip.open if source.endswith(".gz") else open
    with opener(source, "rt") as f:
        rows = [[int(float(x)) for x in line.split(",")] for line in f if line.strip()]
    for n, row in enumerate(rows, 1):
        if len(row) != 65 or max(row[:64]) > 16 or min(row) < 0 or row[64] > 9:
            sys.exit(f"{source}:{n}: want 64 pixels of 0..16 and a label of 0..9")
    with open(target, "wb") as f:
        f.write(b"SPYRDIG1" + struct.pack("<IHH", len(rows), 8, 8))
        f.write(bytes(row[64] for row in rows))
        f.write(b"".join(bytes(row[:64]) for row in rows))
    print(f"{target}: {len(rows)} images, {16 + 65 * len(rows)} bytes")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(sys.argv[1], sys.argv[2])
