# SPDX-License-Identifier: MIT
"""One SDSC file in the public form."""
from .formats import FORMATS

LABELS = ["OUTPUT", "KERNEL", "INPUT", "KERNEL_IDX", "MODEL", "WEIGHT", "STACK", "HEAP"]
PT_LABELS = ["INPUT", "KERNEL", "OUTPUT"]


def mixed_radix(slices, dims, number):
    """Slice index per dim of the core at that place of the list; the first dim is fastest."""
    place = {}
    for dim in dims:
        place[dim] = number % slices[dim]
        number //= slices[dim]
    return {dim: place[dim] for dim in slices}


class Division:
    """The slices of a tensor that the cores hold; several may hold the same one."""

    def __init__(self, space, slices, k_fast=False, cores=None):
        self.slices, self.k_fast, self.cores = dict(slices), k_fast, cores
        dims = list(space)
        self.dims = dims[-1:] + dims[:-1] if k_fast else dims

    def divides(self, cores):
        """True if each core holds a slice of its own."""
        return self.cores is None and cores > 1

    def place(self, number):
        return mixed_radix(self.slices, self.dims, number)


class Sdsc:
    """The computation of one SDSC.

    op          opFuncName
    space       {dim: size} in the order of the files, first dim fastest over the cores
    slices      {dim: cores along it}
    operands    Operand per labeledDs_ entry, the output last
    constants   [(name, format, value)]; a value that is an int is the bit pattern itself
    masks       {dim: [[start, length], ...]}, the coordinates that are padding
    accumulate  list the output among the inputs, as reductions do
    k_fast      the last dim is fastest over the cores (a matmul that splits K)
    names       inputs by number, where they are not all but the last
    cores       core ids, where they are not 0 .. n-1
    divisions   a Division per operand, of a shuffle
    tables      {operand: operand with the indices of its rows}, both by number
    sizes       {dim: symbol}: dims whose size is a parameter; space has their maxima
    symbols     {dim: symbol}: dims of which a launch's value cuts the shares
    """

    def __init__(self, op, space, slices, operands, constants=(), masks=None,
                 accumulate=False, k_fast=False, names=None, cores=None, unit="sfp",
                 labels=None, divisions=None, tables=None, sizes=None, symbols=None):
        self.op, self.space, self.operands = op, dict(space), list(operands)
        self.slices = {dim: slices.get(dim, 1) for dim in space}
        self.constants, self.masks = list(constants), masks or {}
        self.accumulate, self.k_fast = accumulate, k_fast
        self.names, self.unit, self.divisions = names, unit, divisions
        self.tables, self.sizes, self.size_ids = tables or {}, sizes or {}, {}
        self.symbols = symbols or {}
        self.indices = {index: table for table, index in self.tables.items()}
        self.label_order = labels or (PT_LABELS if unit == "pt" else LABELS)
        self.num_cores = 1
        for n in self.slices.values():
            self.num_cores *= n
        self.cores = list(cores or range(self.num_cores))
        for dim, n in self.slices.items():
            if self.space[dim] % n:
                raise ValueError("%s: %d of %s over %d cores" % (op, space[dim], dim, n))

    def place(self, number):
        """Slice index per dim of the core at that place of the list: mixed radix."""
        dims = list(self.space)
        if self.k_fast:
            dims = dims[-1:] + dims[:-1]
        place = mixed_radix(self.slices, dims, number)
        return {dim: place[dim] for dim in self.space}

    def starts(self, operand):
        """Bytes from the base, per core."""
        return [operand.start(self.space, self.slices, self.place(i))
                for i in range(self.num_cores)]

    # ---- the file

    def _labels(self):
        """Layout label of each operand; tensors with the same dims and stick share one."""
        seen, labels, infos = {}, [], {}
        for number, operand in enumerate(self.operands):
            key = (frozenset(operand.order), tuple(operand.parts), number in self.indices)
            if self.unit == "pt":
                key = len(labels)
            if key not in seen:
                seen[key] = self.label_order[len(seen)]
                infos[seen[key]] = {"layoutDimOrder_": list(operand.order),
                                    "stickDimOrder_": [dim for dim, _ in operand.parts],
                                    "stickSize_": [size for _, size in operand.parts]}
            labels.append(seen[key])
        return labels, infos

    def _folds(self, alphas, factors, names):
        return {"dim_prop_func": [{"Affine": {"alpha_": a, "beta_": 0}} for a in alphas],
                "dim_prop_attr": [{"factor_": f, "label_": n} for f, n in zip(factors, names)]}

    def _coordinates(self, index, operand, order):
        division = self.divisions[index] if self.divisions else None
        slices, info = division.slices if division else self.slices, {}
        for dim in order:
            varies = operand.scale[dim] > 0
            share = self.space[dim] // slices[dim] if varies else 1
            cores = slices[dim] if varies else 1
            names = ["core_fold", "corelet_fold", "row_fold"]
            if dim == operand.stick:
                e = operand.lanes
                share = max(share, e) if varies else e
                alphas = [share, 0, 0, e, 1 if operand.scale[dim] != -2 else 0]
                factors = [cores, 1, 1, -(-share // e), e]
                names += ["elem_arr_1", "elem_arr_0"]
            else:
                alphas, factors = [share, 0, 0, 1], [cores, 1, 1, share]
                names += ["elem_arr_0"]
            info[dim] = {"spatial": 3, "temporal": 0, "elemArr": len(names) - 3,
                         "padding": "nopad", "folds": self._folds(alphas, factors, names)}
        held = {str(c): division.place(i) for i, c in enumerate(self.cores)} if division else {}
        return {"coordInfo": info, "coreIdToWkSlice_": held}

    def _node(self, index, operand, addresses, order):
        place = "lx" if operand.lx else "hbm"
        node = {"nodeType_": "allocate", "name_": "allocate-Tensor%d_%s" % (index, place),
                "prev_": "", "ldsIdx_": index, "component_": place}
        if any(a < 0 for a in addresses):
            node["isStartAddrSymbolic_"] = 1
        node["layoutDimOrder_"] = list(operand.order)
        node["maxDimSizes_"] = [-1] * len(operand.order)
        node.update(self._indirection(index))
        node["startAddressCoreCorelet_"] = {
            "dim_prop_func": [{"Map": {}}, {"Const": {}}, {"Const": {}}],
            "dim_prop_attr": [{"factor_": self.num_cores, "label_": "core"},
                              {"factor_": 1, "label_": "corelet"},
                              {"factor_": 1, "label_": "time"}],
            "data_": {"[%d, 0, 0]" % c: str(a) for c, a in zip(self.cores, addresses)}}
        if operand.gap:
            node["backGapCore_"] = {
                dim: {str(c): str(gap) for c in (self.cores if operand.lx else [-1])}
                for dim, gap in operand.gap.items()}
        node["coordinates_"] = self._coordinates(index, operand, order)
        return node

    def _indirection(self, index):
        kind, other = "no_indirection", None
        if index in self.tables:
            kind, other = "value_tensor", self.tables[index]
        if index in self.indices:
            kind, other = "index_tensor", self.indices[index]
        fields = {"indirectAllocType_": kind}
        if other is not None:
            fields["relatedIndirectAccessAlloc_"] = "allocate-Tensor%d_hbm" % other
        if index in self.indices:
            fields["indexTensorType_"] = "index"
        if index in self.tables and self.operands[index].rows:
            fields["indexedSizes_"] = self.operands[index].rows
        return fields

    def _constants(self):
        if not self.constants:
            return "{}"
        out = {}
        for i, (name, fmt, value) in enumerate(self.constants):
            bits = value if isinstance(value, int) else FORMATS[fmt].code(value)
            out[str(i)] = {
                "dataFormat_": fmt, "name_": name,
                "data_": {"dim_prop_func": [{"Const": {}}, {"Const": {}}, {"Map": {}}],
                          "dim_prop_attr": [{"factor_": self.num_cores, "label_": "core"},
                                            {"factor_": 1, "label_": "corelet"},
                                            {"factor_": 1, "label_": "time"}],
                          "data_": {"[0, 0, 0]": [str(bits)]}}}
        return out

    def _share(self, september):
        share = {"name_": "core"}
        for dim in self.space:
            share[dim + "_"] = self.space[dim] // self.slices[dim]
        if september or self.size_ids or self.symbols:
            for key in ("symbolicDimInfo_", "maxSymbolicVolume_", "coreletSplit_", "rowSplit_",
                        "peSfpSplit_", "paddingSizes_"):
                share[key] = {}
        if self.symbols:
            share["symbolicDimInfo_"].update(self.symbols)
        for dim, (_, granularity) in self.size_ids.items():
            share["symbolicDimInfo_"][dim] = {"maxSize_": share[dim + "_"],
                                              "granularity_": granularity // self.slices[dim]}
        return share

    def _compute(self):
        last = len(self.operands) - 1
        names = self.names if self.names is not None else list(range(last))
        names = [i for i in names if i not in self.indices]
        if self.accumulate:
            names = names + [last]
        more = {}
        if self.indices:
            more["indirectAccessIndexLabeledDs"] = ["Tensor%d-idx%d" % (i, i)
                                                    for i in sorted(self.indices)]
        return [{"exUnit": self.unit, "opFuncName": self.op,
                 "attributes_": {"dataFormat_": self.operands[0].fmt, "fidelity_": "regular"},
                 "location": "Inner",
                 "inputLabeledDs": ["Tensor%d-idx%d" % (i, i) for i in names],
                 "outputLabeledDs": ["Tensor%d-idx%d" % (last, last)], **more}]

    def _descriptor(self, addresses, september):
        labels, infos = self._labels()
        n = {"name_": "n"}
        n.update({dim + "_": size for dim, size in self.space.items()})
        lds = []
        for i, (operand, label) in enumerate(zip(self.operands, labels)):
            places = {"lx": {"isPresent": 1}}
            if not operand.lx:
                places = {"hbm": {"isPresent": 1}, "lx": {"isPresent": 1}}
            lds.append({"ldsIdx_": i, "dsName_": "Tensor%d" % i, "dsType_": label,
                        "scale_": [operand.scale[d] for d in infos[label]["layoutDimOrder_"]],
                        "wordLength": operand.word, "dataFormat_": operand.fmt,
                        "memOrg_": places})
        mapping = {"dimToSymbolMapping_": {dim: [own] for dim, (own, _) in self.size_ids.items()}}
        return {"numCoresUsed_": self.num_cores, "numCoreletsUsed_": 1,
                "coreIdsUsed_": self.cores, "N_": n, "coordinateMasking_": self.masks,
                "maskingConstId_": 0 if self.masks else -1, **(mapping if self.size_ids else {}),
                "dataStageParam_": {"0": {"ss_": self._share(september),
                                          "el_": self._share(september)}},
                "primaryDsInfo_": infos,
                "scheduleTree_": [self._node(i, operand, addresses[i],
                                             infos[labels[i]]["layoutDimOrder_"])
                                  for i, operand in enumerate(self.operands)],
                "labeledDs_": lds, "constantInfo_": self._constants(),
                "computeOp_": self._compute()}

    def file(self, number, addresses, september, sizes=None):
        """The file's contents; @addresses: per operand, a number or symbol id per core.

        sizes   {dim: (symbol id, granularity)}
        """
        self.size_ids = sizes or {}
        root = {}
        if september:
            root["debug_handle_"] = {"id": str(7000000000000000000 + number), "source": None,
                                     "aten_op": "aten.%s.default" % self.op,
                                     "ir_chain": [self.op, "buf%d" % number],
                                     "fused_from": [], "transform_history": []}
        root.update({
            "sdscFoldProps_": [{"factor_": 1, "label_": "time"}],
            "sdscFolds_": {"dim_prop_func": [{"Affine": {"alpha_": 1, "beta_": 0}}],
                           "dim_prop_attr": [{"factor_": 1, "label_": "time"}],
                           "data_": {"[0]": "0"}},
            "coreFoldProp_": {"factor_": self.num_cores, "label_": "core"},
            "coreletFoldProp_": {"factor_": 1, "label_": "corelet"},
            "numCoresUsed_": self.num_cores,
            "coreIdToDsc_": {str(c): 0 for c in self.cores},
            "numWkSlicesPerDim_": self.slices,
            "coreIdToWkSlice_": {str(c): self.place(i) for i, c in enumerate(self.cores)},
            "coreIdToDscSchedule": {str(c): [[-1, 0, 0, 0]] for c in self.cores},
            "dscs_": [{self.op: self._descriptor(addresses, september)}]})
        if self.size_ids:
            tags = {str(own): self.sizes[dim] for dim, (own, _) in self.size_ids.items()}
            root.update({"datadscs_": [], "dimToSymbolMappingOpcodeCorrection_": {},
                         "inputSymbolsAndTags_": tags, "symbolDefinitions_": {}})
        return {"%d_%s" % (number, self.op): root}
