# SPDX-License-Identifier: GPL-2.0-only OR MIT
# The model's files, but its arithmetic units: libspyre and the kernel module are built from them.
model_sources = \
	model/card.c model/core.c model/dma.c model/dma_check.c model/format.c model/group.c \
	model/lpddr.c model/move.c model/peer.c model/program.c model/pt.c model/pt_load.c model/sfu.c \
	model/simd/unit.c model/table.c model/timing.c model/topk.c model/verify.c model/verify_instr.c \
	model/verify_shape.c model/verify_view.c

model_headers = \
	model/card.h model/core.h model/cost.h model/dma.h model/format.h model/peer.h model/program.h model/pt.h \
	model/table.h model/types.h model/verify.h
