# SPDX-License-Identifier: MIT
# libaiupti: activity records for the profiler of the front-end.
