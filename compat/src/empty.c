/* SPDX-License-Identifier: MIT */
/*
 * libsendnn and libsendnn_interface: the front-end names both on its link line unless
 * NEW_SYSTEM_SETUP=1, and uses no symbol of them.
 */
typedef int spyre_compat_empty;
