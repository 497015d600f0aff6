/* SPDX-License-Identifier: MIT */
/*
 * Groups of processes for the tests of libspyre_comms. A test program starts itself once for
 * each rank; the rank runs a scenario by name and reports a failure by its exit status.
 */
#ifndef SPYRE_COMPAT_TESTS_COMMS_RANKS_HPP
#define SPYRE_COMPAT_TESTS_COMMS_RANKS_HPP

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <sys/types.h>

#include <spyre_comms.hpp>

/** A card and device memory, used as torch-spyre does. */
class Card
{
public:
	Card();

	flex::CompositeAddress allocate(const void *data, size_t bytes);
	std::vector<std::uint8_t> read(const flex::CompositeAddress &address);

	std::shared_ptr<flex::RuntimeContext> context;
	flex::RuntimeStream *stream;
};

/** A tensor with its memory. */
struct DeviceTensor {
	DeviceTensor(Card &on, spyre_comms::TensorDataTypeEnum type, std::vector<int64_t> sizes,
		     const std::vector<std::uint8_t> &data);

	std::vector<std::uint8_t> read()
	{
		return card.read(memory);
	}

	Card &card;
	flex::CompositeAddress memory;
	spyre_comms::Tensor tensor;
};

/** Prints @text and ends the process with a failure unless @good. */
void expect(bool good, const std::string &text);

/** Calls @function, which must throw an exception whose text contains one of @parts. */
template <typename Function> void expect_error(Function function, std::vector<std::string> parts)
{
	std::string text = "no exception";

	try {
		function();
	} catch (const std::exception &error) {
		text = error.what();
		for (const std::string &part : parts)
			if (text.find(part) != std::string::npos)
				return;
	}
	expect(false, "\"" + text + "\" does not mention \"" + parts[0] + "\"");
}

/** Joins the group of the environment. */
std::shared_ptr<spyre_comms::Context> join(Card &card);

/** Starts @work and waits for it. */
void finish(const std::shared_ptr<spyre_comms::WorkSchedule> &work);

/** Function of a rank's process. */
struct Scenario {
	const char *name;
	void (*run)();
};

/** A scenario: joining fails with the text in EXPECTED_ERROR. */
void refused();

/** Runs one of @scenarios in the process of a rank and returns its exit status. */
int run_scenario(const std::string &name, const std::vector<Scenario> &scenarios);

/** A directory for the sockets, removed at the end; it must be empty then. */
class Directory
{
public:
	Directory();
	~Directory();

	std::vector<std::string> entries() const;

	std::string path;
};

using Environment = std::map<std::string, std::string>;

/** Variables of a rank as torchrun sets them; the card is embedded unless SPYRE_BACKEND is set. */
Environment environment_of(const Directory &directory, int rank, int size);

/** Starts this program with @scenario. */
pid_t start_rank(const std::string &scenario, const Environment &variables);

/** Returns the exit status of a rank, or minus the number of the signal that ended it. */
int wait_rank(pid_t pid);

/** Runs @scenario on @size ranks and returns their statuses. */
std::vector<int> run_ranks(const std::string &scenario, int size);

#endif /* SPYRE_COMPAT_TESTS_COMMS_RANKS_HPP */
