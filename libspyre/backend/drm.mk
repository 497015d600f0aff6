# SPDX-License-Identifier: MIT
# The drm backend, part of libcore.
libspyre_libcore_la_SOURCES += libspyre/backend/drm.h
libspyre_libcore_la_SOURCES += libspyre/backend/drm_bounce.c
libspyre_libcore_la_SOURCES += libspyre/backend/drm_card.c
libspyre_libcore_la_SOURCES += libspyre/backend/drm_encode.c
libspyre_libcore_la_SOURCES += libspyre/backend/drm_error.c
libspyre_libcore_la_SOURCES += libspyre/backend/drm_memory.c
libspyre_libcore_la_SOURCES += libspyre/backend/drm_program.c
libspyre_libcore_la_SOURCES += libspyre/backend/drm_queue.c
libspyre_libcore_la_SOURCES += libspyre/backend/drm_range.c
libspyre_libcore_la_SOURCES += libspyre/backend/drm_reset.c
libspyre_libcore_la_SOURCES += libspyre/backend/drm_submit.c
libspyre_libcore_la_SOURCES += libspyre/backend/drm_uring.c
libspyre_libcore_la_SOURCES += libspyre/backend/drm_sysfs.c
libspyre_libcore_la_SOURCES += libspyre/backend/drm_sysfs.h
