// SPDX-License-Identifier: MIT
/*
 * Identifies the values of the planner's settings. Every eager operation asks for them, so
 * the variables are searched only after the environment has changed: setenv() and putenv()
 * replace the pointer to a variable.
 */
#include "planner_settings.h"

#include <unistd.h>

#include <cstdlib>
#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace torch_spyre {

namespace {

/* The environment of a thread's last call. */
struct Seen {
	std::vector<const char *> variables;
	uint64_t settings = 0;

	bool is_current() const
	{
		size_t i = 0;

		if (!environ)
			return false;
		while (i < variables.size() && environ[i] == variables[i])
			i++;
		return i == variables.size() && !environ[i];
	}
};

std::string values()
{
	std::string text;

	for (const char *name : kPlannerSettings) {
		const char *value = std::getenv(name);

		text += value ? "=" : "-";
		text += value ? value : "";
		text += '\0';
	}
	return text;
}

/* Numbers are never used again, since kernels of earlier settings remain in the cache. */
uint64_t number_of(const std::string &values)
{
	static std::mutex mutex;
	static auto *numbers = new std::map<std::string, uint64_t>;
	std::lock_guard<std::mutex> lock(mutex);

	return numbers->emplace(values, numbers->size()).first->second;
}

} // namespace

uint64_t planner_settings()
{
	static thread_local Seen seen;

	if (seen.is_current())
		return seen.settings;
	seen.variables.clear();
	for (char **variable = environ; variable && *variable; variable++)
		seen.variables.push_back(*variable);
	seen.settings = number_of(values());
	return seen.settings;
}

} // namespace torch_spyre
