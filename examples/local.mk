# SPDX-License-Identifier: MIT
# Handwritten digits on the card.
noinst_PROGRAMS += examples/digits/digits
examples_digits_digits_CPPFLAGS = $(AM_CPPFLAGS) \
	-DDIGITS_SOURCE_DIR='"$(abs_top_srcdir)/examples/digits"' \
	-DDIGITS_DATA_DIR='"$(digitsdir)"'
examples_digits_digits_SOURCES =
examples_digits_digits_SOURCES += examples/digits/dataset.c
examples_digits_digits_SOURCES += examples/digits/dataset.h
examples_digits_digits_SOURCES += examples/digits/digits.c
examples_digits_digits_SOURCES += examples/digits/half.h
examples_digits_digits_SOURCES += examples/digits/network.c
examples_digits_digits_SOURCES += examples/digits/network.h
examples_digits_digits_SOURCES += examples/digits/progress.c
examples_digits_digits_SOURCES += examples/digits/progress.h
examples_digits_digits_SOURCES += examples/digits/reference.c
examples_digits_digits_SOURCES += examples/digits/reference.h
examples_digits_digits_LDADD = libspyre/libspyre.la $(LIBM)

digitsdir = $(pkgdatadir)/digits
dist_digits_DATA = examples/digits/ORIGIN examples/digits/digits.u8 examples/digits/weights.f16
EXTRA_DIST += examples/digits/pack.py examples/digits/train.py

# Semantic search with PyTorch.
EXTRA_DIST += examples/semantic_search/ORIGIN examples/semantic_search/search.py
EXTRA_DIST += examples/semantic_search/sentences.txt

# A conversation with a language model.
EXTRA_DIST += examples/chat/ORIGIN examples/chat/chat.py

# A language model served by vLLM.
EXTRA_DIST += examples/serve/answer.sh examples/serve/convert.py examples/serve/serve.sh

# A first program, which users and installcheck build against the installed library.
EXTRA_DIST += examples/add/Makefile examples/add/add.c examples/add/add.py

# Language models divided among several cards.
EXTRA_DIST += examples/tensor_parallel/gpt_oss.py examples/tensor_parallel/llama.py
EXTRA_DIST += examples/tensor_parallel/parallel.py examples/tensor_parallel/simulated.py
