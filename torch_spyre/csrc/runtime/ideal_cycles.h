// SPDX-License-Identifier: MIT
/*
 * Ideal cycles of kernels, as aiu-trace-analyzer reads them: the cycles that the products of a
 * kernel would take if the arrays of all cores were never idle.
 */
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace torch_spyre {

class IdealCycles {
public:
	/* Adds a launch; kernels of the same name have the average of their launches. */
	void add(const std::string &kernel, const std::string &category, double cycles);
	/*
	 * Writes @folder/inductor-spyre/KERNEL/perf/ideal_cycles.json for each kernel. Returns the
	 * reason why a file cannot be written, or an empty text.
	 */
	std::string write(const std::string &folder) const;
	/* @name as the name of a folder, which has no slash. */
	static std::string name_of_folder(const std::string &name);

private:
	struct Kernel {
		std::string category;
		double cycles = 0;
		uint64_t launches = 0;
	};

	std::map<std::string, Kernel> kernels;
};

} // namespace torch_spyre
