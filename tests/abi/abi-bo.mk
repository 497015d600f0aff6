# SPDX-License-Identifier: MIT
check_PROGRAMS += tests/abi/abi-counters
tests_abi_abi_counters_SOURCES = tests/abi/abi-counters.c tests/abi/user.c tests/abi/user.h
tests_abi_abi_counters_CPPFLAGS = $(ABI_CPPFLAGS)
tests_abi_abi_counters_LDADD = tests/abi/libabi.la $(LIBDRM_LIBS)

check_PROGRAMS += tests/abi/abi-bo tests/abi/abi-dmabuf tests/abi/abi-memcg
tests_abi_abi_bo_SOURCES = tests/abi/abi-bo.c tests/abi/memory.c tests/abi/memory.h \
	tests/abi/user.c tests/abi/user.h
tests_abi_abi_bo_CPPFLAGS = $(ABI_CPPFLAGS)
tests_abi_abi_bo_LDADD = tests/abi/libabi.la $(LIBDRM_LIBS)

tests_abi_abi_dmabuf_SOURCES = tests/abi/abi-dmabuf.c tests/abi/dmabuf-peers.c \
	tests/abi/dmabuf-peers.h tests/abi/memory.c tests/abi/memory.h
tests_abi_abi_dmabuf_CPPFLAGS = $(ABI_CPPFLAGS)
tests_abi_abi_dmabuf_LDADD = tests/abi/libabi.la $(LIBDRM_LIBS) -lpthread

tests_abi_abi_memcg_SOURCES = tests/abi/abi-memcg.c tests/abi/memcg.h tests/abi/memcg-oom.c \
	tests/abi/memcg-charge.c $(ABI_FENCE_SOURCES) tests/abi/memory.c tests/abi/memory.h
tests_abi_abi_memcg_CPPFLAGS = $(BREAK_CPPFLAGS)
tests_abi_abi_memcg_LDADD = $(BREAK_LDADD)

check_PROGRAMS += tests/abi/abi-peer
tests_abi_abi_peer_SOURCES = tests/abi/abi-peer.c tests/abi/memory.c tests/abi/memory.h \
	$(ABI_FENCE_SOURCES)
tests_abi_abi_peer_CPPFLAGS = $(ABI_CPPFLAGS)
tests_abi_abi_peer_LDADD = tests/abi/libabi.la $(LIBDRM_LIBS)
