/* SPDX-License-Identifier: MIT */
/* Facts of the machine that sysfs, procfs and modprobe's lists tell. */
#ifndef SPYRE_TOOL_HOST_H
#define SPYRE_TOOL_HOST_H

#include <stdbool.h>
#include <stddef.h>

#define HOST_MODULE "spyre_vdev"

/* The first line of a small file without its end; false if unreadable. */
bool host_read_line(const char *path, char *buffer, size_t bytes);
bool host_module_loaded(void);
/* Version of the loaded module, "" if it tells none. */
void host_module_version(char *buffer, size_t bytes);
/* True if modprobe would find the module for the running kernel. */
bool host_module_installed(void);
/* "6.12.43+deb12-amd64". */
void host_kernel_release(char *buffer, size_t bytes);
/* " debian ", " fedora rhel ": ID and ID_LIKE of os-release, with blanks around each. */
void host_distribution(char *buffer, size_t bytes);
/* Next accel node of the module from @minor on; -1 when there are no more. */
int host_next_node(int minor, char *path, size_t bytes);
/* The widest unit that the library can use on this CPU, and what the CPU has. */
const char *host_vector_unit(char *features, size_t bytes);

#endif /* SPYRE_TOOL_HOST_H */
