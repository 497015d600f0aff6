// SPDX-License-Identifier: MIT
/* Groups of processes for the tests of libspyre_comms. */
#include "comms_ranks.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

extern char **environ;

void expect(bool good, const std::string &text)
{
	if (good)
		return;
	const char *rank = getenv("RANK");

	fprintf(stderr, "rank %s: %s\n", rank ? rank : "-", text.c_str());
	_exit(1);
}

Card::Card()
{
	flex::RuntimeStatus status = flex::initializeRuntime(&context, 0);

	expect(context != nullptr, status.text);
	stream = context->getDefaultStream();
}

flex::CompositeAddress Card::allocate(const void *data, size_t bytes)
{
	const flex::AllocationDirective directive(flex::PlacementPolicy::Bind, {0}, std::nullopt,
						  flex::MemoryType::Tensor);
	flex::CompositeAddress address = context->getAllocator()->allocate(bytes, directive);
	flex::DmaParams *params =
		flex::createDmaParams(const_cast<void *>(data), bytes, true, &address);

	stream->launchOperationH2D(params);
	flex::destroyDmaParams(params);
	stream->synchronize();
	return address;
}

std::vector<std::uint8_t> Card::read(const flex::CompositeAddress &address)
{
	std::vector<std::uint8_t> data(address.total_size());
	flex::DmaParams *params = flex::createDmaParams(data.data(), data.size(), false, &address);

	stream->launchOperationD2H(params);
	flex::destroyDmaParams(params);
	stream->synchronize();
	return data;
}

DeviceTensor::DeviceTensor(Card &on, spyre_comms::TensorDataTypeEnum type,
			   std::vector<int64_t> sizes, const std::vector<std::uint8_t> &data)
    : card(on), memory(on.allocate(data.data(), data.size())),
      tensor(spyre_comms::TensorInfo(type, spyre_comms::TensorShape(std::move(sizes))))
{
	tensor.SetSpyreDeviceAddressBorrowed(&memory);
}

std::shared_ptr<spyre_comms::Context> join(Card &card)
{
	spyre_comms::initialize_library(card.context, card.stream);
	std::shared_ptr<spyre_comms::Context> world = spyre_comms::get_world_context();

	expect(world != nullptr, "there is no group");
	return world;
}

void finish(const std::shared_ptr<spyre_comms::WorkSchedule> &work)
{
	work->start();
	work->wait();
	expect(work->query(), "an operation is not finished after wait()");
}

void refused()
{
	Card card;

	expect_error([&] { spyre_comms::initialize_library(card.context, card.stream); },
		     {getenv("EXPECTED_ERROR")});
	expect(spyre_comms::get_world_context() == nullptr, "there is a group");
	spyre_comms::finalize_library();
}

int run_scenario(const std::string &name, const std::vector<Scenario> &scenarios)
{
	for (const Scenario &scenario : scenarios) {
		if (name != scenario.name)
			continue;
		try {
			scenario.run();
		} catch (const std::exception &error) {
			expect(false, error.what());
		}
		return EXIT_SUCCESS;
	}
	expect(false, "unknown scenario " + name);
	return EXIT_FAILURE;
}

Directory::Directory()
{
	char name[] = "/tmp/spyre-comms-test-XXXXXX";

	expect(mkdtemp(name), "cannot create a directory");
	path = name;
}

Directory::~Directory()
{
	expect(entries().empty(), "a socket is left in " + path);
	rmdir(path.c_str());
}

std::vector<std::string> Directory::entries() const
{
	std::vector<std::string> names;
	DIR *directory = opendir(path.c_str());

	expect(directory, "cannot open " + path);
	while (const dirent *entry = readdir(directory))
		if (entry->d_name[0] != '.')
			names.emplace_back(path + "/" + entry->d_name);
	closedir(directory);
	return names;
}

Environment environment_of(const Directory &directory, int rank, int size)
{
	const char *backend = getenv("SPYRE_BACKEND");

	return {
		{"RANK", std::to_string(rank)},	      {"LOCAL_RANK", std::to_string(rank)},
		{"WORLD_SIZE", std::to_string(size)}, {"LOCAL_WORLD_SIZE", std::to_string(size)},
		{"MASTER_ADDR", "127.0.0.1"},	      {"MASTER_PORT", "29500"},
		{"XDG_RUNTIME_DIR", directory.path},  {"SPYRE_COMMS_TIMEOUT_MS", "120000"},
		{"SPYRE_BACKEND", backend ? backend : "embedded"},
	};
}

pid_t start_rank(const std::string &scenario, const Environment &variables)
{
	std::vector<std::string> texts;
	std::vector<char *> pointers;
	std::string name = "rank", argument = scenario;
	char *const arguments[] = {name.data(), argument.data(), nullptr};
	pid_t pid;

	for (char **entry = environ; *entry; entry++) {
		char *end = strchr(*entry, '=');

		if (end && !variables.count(std::string(*entry, end)))
			texts.emplace_back(*entry);
	}
	for (const auto &[variable, value] : variables)
		if (!value.empty())
			texts.push_back(variable + "=" + value);
	for (std::string &text : texts)
		pointers.push_back(text.data());
	pointers.push_back(nullptr);
	expect(!posix_spawn(&pid, "/proc/self/exe", nullptr, nullptr, arguments, pointers.data()),
	       "cannot start a process");
	return pid;
}

int wait_rank(pid_t pid)
{
	int status;

	expect(waitpid(pid, &status, 0) == pid, "cannot wait for a process");
	return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

std::vector<int> run_ranks(const std::string &scenario, int size)
{
	Directory directory;
	std::vector<pid_t> pids;
	std::vector<int> statuses;

	for (int r = 0; r < size; r++)
		pids.push_back(start_rank(scenario, environment_of(directory, r, size)));
	for (pid_t pid : pids)
		statuses.push_back(wait_rank(pid));
	return statuses;
}
