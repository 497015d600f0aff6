#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes the bundles gelu, softmax and layernorm for 4096 x 4096 to a folder.

They are those of tests/conformance/bundles, whose SDSCs a front-end made for
smaller tensors, with other sizes: the division of the work, the operations and
the use of the scratchpad are the same.  In softmax the difference from the
maximum takes the place of the input, since two slices do not fit a scratchpad.
"""
import json
import pathlib
import re
import sys

SIZE = 4096
CORES = 32
HERE = pathlib.Path(__file__).resolve().parent
SOURCE = HERE.parent / "tests/conformance/bundles"


def scale_coordinates(info, row, el):
    """Folds: a step per core, then sticks, then elements, outer to inner."""
    for name, dim in info.items():
        attr = [a["factor_"] for a in dim["folds"]["dim_prop_attr"]]
        func = [f["Affine"] for f in dim["folds"]["dim_prop_func"]]
        if name == row:
            if attr[-1] == 1:       # a broadcast dimension
                continue
            func[0]["alpha_"] = el[row]
            dim["folds"]["dim_prop_attr"][-1]["factor_"] = el[row]
        elif func[-1]["alpha_"]:    # not what is left of a reduced dimension
            if name != "out":
                continue
            func[0]["alpha_"] = el["out"]
            dim["folds"]["dim_prop_attr"][-2]["factor_"] = el["out"] // 64


def scale_sdsc(path, out, addresses, constants):
    whole = json.loads(path.read_text())
    sdsc = next(iter(whole.values()))
    slices = sdsc["numWkSlicesPerDim_"]
    dsc = next(iter(sdsc["dscs_"][0].values()))
    row = "mb" if "mb" in slices else "out"
    for params in (dsc["N_"], *dsc["dataStageParam_"]["0"].values()):
        share = params["name_"] == "core"
        for dim in slices:
            if dim == row or dim == "out":
                params[dim + "_"] = SIZE // (slices[dim] if share else 1)
    el = {dim: SIZE // slices[dim] for dim in slices}
    for node in dsc["scheduleTree_"]:
        scale_coordinates(node["coordinates_"]["coordInfo"], row, el)
        if node["component_"] == "lx":
            data = node["startAddressCoreCorelet_"]["data_"]
            for core in data:
                data[core] = str(addresses[int(data[core])])
    constants_of = dsc.get("constantInfo_")
    for constant in constants_of.values() if isinstance(constants_of, dict) else ():
        data = constant["data_"]["data_"]
        for key in data:
            data[key] = [str(constants.get(constant["name_"], v)) for v in data[key]]
    (out / path.name).write_text(json.dumps(whole, indent=1))


def write_bundle(name, offset, addresses, constants, root):
    out = root / name
    out.mkdir(parents=True, exist_ok=True)
    for path in sorted((SOURCE / name).glob("sdsc_*.json")):
        scale_sdsc(path, out, addresses, constants)
    text = (SOURCE / name / "bundle.mlir").read_text()
    text = re.sub(r"arith\.constant (\d+)", lambda m: f"arith.constant {offset(int(m[1]))}", text)
    (out / "bundle.mlir").write_text(text)


def main():
    root = pathlib.Path(sys.argv[1])
    # gelu: [16, 512, 64], two slices of rows and 16 of one stick of columns.
    write_bundle("gelu", lambda at: at // 65536 * (SIZE * 128 * 4) +
                 at % 65536 // 32768 * (SIZE // 2 * 128), {}, {}, root)
    # softmax: 16 rows a core become 128; [maximum or sum | slice of the input].
    rows = SIZE // CORES * 128
    write_bundle("softmax", lambda at: at * 8, {0: 0, 2048: rows, 34816: rows}, {}, root)
    # layernorm: 8 rows a core become 128, 1/1024 in DL16 becomes 1/4096.
    write_bundle("layernorm", lambda at: at * 16, {}, {"exx2scale": 10752 - (2 << 9)}, root)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: chains.py FOLDER")
    main()
