// SPDX-License-Identifier: MIT
/* Communicators: how the ranks of a group meet, and the life of the result. */
#include "communicator.h"

#include <algorithm>
#include <cstring>
#include <set>
#include <thread>

#include <c10/util/Exception.h>

#include "runtime/device.h"
#include "runtime/gil.h"
#include "runtime/wait.h"

namespace torch_spyre {

namespace {

using Clock = std::chrono::steady_clock;

struct Registry {
	std::mutex lock;
	std::set<Communicator *> all;
};

/* Not destroyed, because process groups may outlive this file's statics. */
Registry &registry()
{
	static auto *r = new Registry;

	return *r;
}

/*
 * Waits for a key of the store. It asks again and again, since a wait of the store's client keeps
 * other threads of the process from using it, and Ctrl-C from ending it.
 */
std::vector<uint8_t> wait_for_key(const Meeting &meeting, const std::string &key)
{
	auto deadline = Clock::now() + meeting.timeout;
	auto pause = std::chrono::milliseconds(1);

	while (!meeting.store->check({ key })) {
		TORCH_CHECK_WITH(DistBackendError, Clock::now() < deadline,
				 "spyreccl: cannot create the communicator of ", meeting.name,
				 ": its rank ", meeting.rank ? 0 : 1, " has not begun within ",
				 meeting.timeout.count(),
				 " ms; check that all ranks call the same collectives");
		TORCH_CHECK_WITH(DistBackendError, !meeting.cancelled || !*meeting.cancelled,
				 "spyreccl: cannot create the communicator of ", meeting.name,
				 ": the process group was aborted or shut down");
		raise_signals_too();
		std::this_thread::sleep_for(pause);
		pause = std::min(pause * 2, std::chrono::milliseconds(16));
	}
	return meeting.store->get(key);
}

spyre_comm_id exchange_id(const Meeting &meeting)
{
	const std::string here = meeting.key + "/here";
	spyre_comm_id id;

	if (meeting.cancelled && meeting.rank)
		meeting.store->set(here, std::vector<uint8_t>{ 1 });
	else if (meeting.cancelled)
		(void)wait_for_key(meeting, here);
	if (meeting.rank == 0) {
		check_communicator(spyre_comm_get_id(&id), "creating a communicator");
		auto *bytes = reinterpret_cast<const uint8_t *>(id.opaque);

		meeting.store->set(meeting.key,
				   std::vector<uint8_t>(bytes, bytes + sizeof(id.opaque)));
		return id;
	}

	std::vector<uint8_t> bytes = wait_for_key(meeting, meeting.key);

	TORCH_CHECK_WITH(DistBackendError, bytes.size() == sizeof(id.opaque),
			 "spyreccl: cannot create the communicator of ", meeting.name,
			 ": the store has ", bytes.size(), " bytes as its id instead of ",
			 sizeof(id.opaque));
	std::memcpy(id.opaque, bytes.data(), bytes.size());
	return id;
}

/* True for wrong arguments of a call, as opposed to failures of the group. */
bool is_argument_error(spyre_status status)
{
	switch (status) {
	case SPYRE_ERROR_INVALID_ARGUMENT:
	case SPYRE_ERROR_INVALID_ADDRESS:
	case SPYRE_ERROR_LAYOUT:
	case SPYRE_ERROR_FORMAT:
	case SPYRE_ERROR_CAPTURE:
	case SPYRE_ERROR_OUT_OF_DEVICE_MEMORY:
		return true;
	default:
		return false;
	}
}

} // namespace

void fail_communicator(spyre_status status, const std::string &what)
{
	if (is_argument_error(status))
		fail(status, what.c_str());
	C10_THROW_ERROR(DistBackendError,
			c10::str("spyreccl: ", what, ": ", spyre_last_error(), " [",
				 spyre_status_name(status), "]"));
}

std::shared_ptr<Communicator> Communicator::meet(const Meeting &meeting, c10::DeviceIndex device)
{
	spyre_context *c = context(device);
	spyre_comm_config config{};
	ReleaseGil no_gil;
	spyre_comm_id id = exchange_id(meeting);
	spyre_comm *comm;
	spyre_status status;

	config.struct_size = sizeof(config);
	config.timeout_ms = std::max<int64_t>(meeting.timeout.count(), 1);
	std::strncpy(config.name, meeting.name.c_str(), sizeof(config.name) - 1);
	status = spyre_comm_init_rank(c, meeting.size, &id, meeting.rank, &config, &comm);
	if (status)
		fail_communicator(status, c10::str("creating the communicator of ", meeting.name));
	return std::make_shared<Communicator>(comm, device);
}

Communicator::Communicator(spyre_comm *comm, c10::DeviceIndex device)
	: comm_(comm), device_(device), generation_(generation(device))
{
	std::lock_guard<std::mutex> guard(registry().lock);

	registry().all.insert(this);
}

Communicator::~Communicator()
{
	{
		std::lock_guard<std::mutex> guard(registry().lock);

		registry().all.erase(this);
	}
	drop();
}

spyre_comm *Communicator::get() const
{
	std::lock_guard<std::mutex> guard(lock_);

	TORCH_CHECK(comm_ && generation_ == generation(device_),
		    "spyreccl: the communicator has ended, by shutdown() or a reset of spyre:",
		    static_cast<int>(device_), "; create the process group again");
	return comm_;
}

spyre_status Communicator::error(std::string *text) const
{
	std::lock_guard<std::mutex> guard(lock_);
	spyre_status error = SPYRE_SUCCESS;

	if (!comm_)
		return SPYRE_SUCCESS;
	if (spyre_comm_get_error(comm_, &error) != SPYRE_SUCCESS || error == SPYRE_SUCCESS)
		return SPYRE_SUCCESS;
	*text = spyre_last_error();
	return error;
}

void Communicator::check(const char *what) const
{
	std::string text;
	spyre_status status = error(&text);

	TORCH_CHECK_WITH(DistBackendError, status == SPYRE_SUCCESS, "spyreccl: ", what, ": ", text,
			 " [", spyre_status_name(status), "]");
}

void Communicator::limit(std::chrono::milliseconds timeout) const
{
	check_communicator(spyre_comm_set_timeout(get(), std::max<int64_t>(timeout.count(), 1)),
			   "limiting a collective");
}

void Communicator::abort() noexcept
{
	std::lock_guard<std::mutex> guard(lock_);

	if (comm_ && !in_bad_fork())
		(void)spyre_comm_abort(comm_);
}

void Communicator::shutdown()
{
	ReleaseGil no_gil;
	spyre_comm *comm;
	{
		std::lock_guard<std::mutex> guard(lock_);

		comm = std::exchange(comm_, nullptr);
	}
	if (!comm || in_bad_fork())
		return;
	(void)spyre_comm_finalize(comm);
	(void)spyre_comm_destroy(comm);
}

void Communicator::drop() noexcept
{
	ReleaseGil no_gil;
	spyre_comm *comm;
	{
		std::lock_guard<std::mutex> guard(lock_);

		comm = std::exchange(comm_, nullptr);
	}
	if (!comm || in_bad_fork())
		return;
	(void)spyre_comm_abort(comm);
	(void)spyre_comm_destroy(comm);
}

void drop_communicators(c10::DeviceIndex device)
{
	std::lock_guard<std::mutex> guard(registry().lock);

	for (Communicator *communicator : registry().all)
		if (communicator->device() == device)
			communicator->drop();
}

} // namespace torch_spyre
