# SPDX-License-Identifier: MIT
# libspyre_comms: collective operations for the distributed backend of the front-end.
