// SPDX-License-Identifier: MIT
/* Storages changed in place. */
#pragma once

#include "runtime/spyre.h"

namespace torch_spyre {

/* Makes @storage hold @bytes of its dtype, keeping what fits. */
void resize_storage_bytes(const c10::Storage &storage, int64_t bytes);

} // namespace torch_spyre
