// SPDX-License-Identifier: MIT
/* The place of this process in its group, from the environment. */
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <stdexcept>

#include "comms_group.hpp"

namespace spyre_comms
{

namespace
{

const char *text_of(const char *name)
{
	const char *text = getenv(name);

	return text && *text ? text : nullptr;
}

int number_of(const char *name, int least, int most)
{
	const char *text = text_of(name), *end;
	int value = 0;

	end = text + strlen(text);
	auto [stop, error] = std::from_chars(text, end, value);
	if (error != std::errc() || stop != end || value < least || value > most)
		throw std::runtime_error(
			std::string("cannot join the group of processes: invalid ") + name + " '" +
			text + "': expected " + std::to_string(least) + " to " +
			std::to_string(most));
	return value;
}

/* FNV-1a, to keep the name of the socket short. */
std::string digest(const std::string &text)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325);
	char digits[17];

	for (unsigned char c : text)
		hash = (hash ^ c) * UINT64_C(0x100000001b3);
	snprintf(digits, sizeof(digits), "%016llx", static_cast<unsigned long long>(hash));
	return digits;
}

} // namespace

Place Place::from_environment()
{
	bool global = text_of("RANK") && text_of("WORLD_SIZE");
	const char *rank = global ? "RANK" : "LOCAL_RANK";
	const char *size = global ? "WORLD_SIZE" : "LOCAL_WORLD_SIZE";
	Place place;

	if (!text_of(rank) || !text_of(size))
		throw std::runtime_error(
			"cannot join the group of processes: RANK and WORLD_SIZE are not set, nor "
			"LOCAL_RANK and LOCAL_WORLD_SIZE; start the processes with torchrun, or "
			"set "
			"them");
	place.size = number_of(size, 1, MAX_RANKS);
	place.rank = number_of(rank, 0, place.size - 1);
	if (global && text_of("LOCAL_WORLD_SIZE")) {
		int local = number_of("LOCAL_WORLD_SIZE", 1, INT32_MAX);

		if (local != place.size)
			throw std::runtime_error(
				"cannot join the group of processes: LOCAL_WORLD_SIZE is " +
				std::to_string(local) + " and WORLD_SIZE is " +
				std::to_string(place.size) +
				", but groups across machines are not supported; start all "
				"processes on one machine");
	}
	if (text_of("SPYRE_COMMS_TIMEOUT_MS"))
		place.timeout_ms = number_of("SPYRE_COMMS_TIMEOUT_MS", 1, INT32_MAX);
	if (place.size == 1)
		return place;
	if (!text_of("MASTER_PORT"))
		throw std::runtime_error("cannot join the group of processes: MASTER_PORT is not "
					 "set; give all processes of the group the same number");

	/* The variables of torchrun differ between jobs and between the attempts of a job. */
	for (const char *name :
	     {"MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT"})
		place.name += std::string(text_of(name) ? text_of(name) : "") + "\n";
	place.name = digest(place.name + std::to_string(place.size));
	return place;
}

} // namespace spyre_comms
