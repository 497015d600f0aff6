/* SPDX-License-Identifier: MIT */
/* A program outside the tree, built against the installed library only. */
#include <stdio.h>
#include <spyre/spyre.h>

int main(void)
{
	const uint32_t want = (uint32_t)SPYRE_VERSION_MAJOR << 16 | SPYRE_VERSION_MINOR << 8 |
			      SPYRE_VERSION_PATCH;
	int count = -1;

	if (spyre_version() != want) {
		fprintf(stderr, "the library is %#x, its headers are %#x\n",
			(unsigned int)spyre_version(), (unsigned int)want);
		return 1;
	}
	if (spyre_device_count(&count) != SPYRE_SUCCESS || count < 0) {
		fprintf(stderr, "%s\n", spyre_last_error());
		return 1;
	}
	printf("%d\n", count);
	return 0;
}
