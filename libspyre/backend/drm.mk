# SPDX-License-Identifier: MIT
# The drm backend, linked into libspyre.la.
noinst_LTLIBRARIES += libspyre_drm.la
libspyre_drm_la_SOURCES = \
	libspyre/backend/backend.h \
	libspyre/backend/drm.h \
	libspyre/backend/drm_card.c \
	libspyre/backend/drm_encode.c \
	libspyre/backend/drm_error.c \
	libspyre/backend/drm_memory.c \
	libspyre/backend/drm_program.c \
	libspyre/backend/drm_queue.c \
	libspyre/backend/drm_range.c \
	libspyre/backend/drm_submit.c \
	libspyre/backend/drm_sysfs.c \
	libspyre/backend/drm_sysfs.h
libspyre_drm_la_CPPFLAGS = $(AM_CPPFLAGS) $(LIBDRM_CFLAGS)
libspyre_drm_la_LIBADD = $(LIBDRM_LIBS)
