// SPDX-License-Identifier: MIT
/* Storages changed in place. */
#pragma once

#include "runtime/spyre.h"

namespace torch_spyre {

/* Resizes @storage to @bytes of its dtype and keeps the contents that fit. */
void resize_storage_bytes(const c10::Storage &storage, int64_t bytes);

} // namespace torch_spyre
