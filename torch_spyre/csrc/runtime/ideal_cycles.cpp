// SPDX-License-Identifier: MIT
#include "ideal_cycles.h"

#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <locale>
#include <sstream>

namespace torch_spyre {

namespace {

/* A JSON string of a name without control characters. */
std::string quoted(const std::string &text)
{
	std::string json = "\"";

	for (char c : text) {
		if (c == '"' || c == '\\')
			json += '\\';
		json += c;
	}
	return json + "\"";
}

} // namespace

void IdealCycles::add(const std::string &kernel, const std::string &category, double cycles)
{
	Kernel &k = kernels[kernel];

	k.category = category;
	k.cycles += cycles;
	k.launches++;
}

std::string IdealCycles::name_of_folder(const std::string &name)
{
	std::string folder = name;

	for (char &c : folder)
		if (c == '/' || c == '\\' || c == '"' || static_cast<unsigned char>(c) < ' ')
			c = '_';
	return folder.empty() || folder[0] == '.' ? "_" + folder : folder;
}

std::string IdealCycles::write(const std::string &folder) const
{
	for (const auto &[name, kernel] : kernels) {
		std::filesystem::path directory =
			std::filesystem::path(folder) / "inductor-spyre" / name / "perf";
		std::filesystem::path path = directory / "ideal_cycles.json";
		std::filesystem::path part = directory / ("." + std::to_string(getpid()));
		std::error_code error;
		std::ostringstream text;

		text.imbue(std::locale::classic());
		text.precision(17);
		text << "[{\"ideal_cycles\": " << kernel.cycles / static_cast<double>(kernel.launches)
		     << ", \"op_category\": " << quoted(kernel.category) << "}]\n";
		std::filesystem::create_directories(directory, error);
		if (!error) {
			std::ofstream file(part);

			/* A reader sees a whole file or none. */
			file << text.str();
			file.close();
			if (file)
				std::filesystem::rename(part, path, error);
			else
				error = std::error_code(errno, std::generic_category());
		}
		if (error)
			return path.string() + ": " + error.message();
	}
	return {};
}

} // namespace torch_spyre
