/* SPDX-License-Identifier: MIT */
/* Facts about the machine from sysfs, procfs and modprobe's lists. */
#ifndef SPYRE_TOOL_HOST_H
#define SPYRE_TOOL_HOST_H

#include <stdbool.h>
#include <stddef.h>

#define HOST_MODULE "spyre_vdev"

/* Reads the first line of a small file without its newline; false if unreadable. */
bool host_read_line(const char *path, char *buffer, size_t bytes);
bool host_module_loaded(void);
/* Version of the loaded module; "" if it does not report one. */
void host_module_version(char *buffer, size_t bytes);
/* True if modprobe would find the module for the running kernel. */
bool host_module_installed(void);
/* "6.12.43+deb12-amd64". */
void host_kernel_release(char *buffer, size_t bytes);
/* ID and ID_LIKE of the os-release @path, blanks around each: " debian ", " fedora rhel ". */
void host_distribution(const char *path, char *buffer, size_t bytes);
/* Returns the next accel node of the module from @minor on; -1 after the last. */
int host_next_node(int minor, char *path, size_t bytes);

#endif /* SPYRE_TOOL_HOST_H */
