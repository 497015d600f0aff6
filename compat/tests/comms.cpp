// SPDX-License-Identifier: MIT
/* libspyre_comms: operations of groups of processes, each with an embedded card. */
#include "check.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include <spyre/spyre.h>

#include "comms_ranks.hpp"
#include "tests/order.h"

using namespace spyre_comms;
using Type = TensorDataTypeEnum;
using Bytes = std::vector<std::uint8_t>;

namespace
{
/* More than three pieces, and a last one that is shorter. */
constexpr int64_t LARGE_STICKS = 3 * 8192 + 3;

/* An operation that cannot be started has failed: a wait for it ends. */
void expect_no_start(const std::shared_ptr<WorkSchedule> &work, const std::string &text)
{
	expect_error([&] { work->start(); }, {text});
	expect_error([&] { work->query(); }, {text});
	expect_error([&] { work->wait(); }, {text});
}

/* Bytes that differ between ranks, tensors and positions. */
Bytes pattern(int rank, int number, size_t bytes)
{
	Bytes data(bytes);
	uint32_t state = 1u + rank * 7919u + number * 104729u;

	for (std::uint8_t &byte : data) {
		state = state * 1664525u + 1013904223u;
		byte = state >> 24;
	}
	return data;
}

/* The term of a rank: all codes of DL16, with another neighbour on each rank. */
Bytes dl16_term(int rank, size_t elements)
{
	Bytes data(2 * elements);

	for (size_t i = 0; i < elements; i++) {
		uint16_t code = i * (2 * rank + 1) + 977 * rank;

		put_le(&data[2 * i], code, 2);
	}
	return data;
}

Bytes fp32_term(int rank, size_t elements)
{
	Bytes data(4 * elements);

	for (size_t i = 0; i < elements; i++) {
		float value = std::ldexp(1.0f + (i * 37 + rank * 11) % 1000 / 1000.0f,
					 (i * 13 + rank * 29) % 40 - 20);

		memcpy(&data[4 * i], &value, 4);
	}
	order_le(data.data(), elements, 4);
	return data;
}

/* The sum in fp32 in rank order, rounded once, as docs/upstream.md promises. */
Bytes sum_of(std::vector<Bytes> terms, spyre_format format)
{
	size_t size = spyre_format_bytes(format), count = terms[0].size() / size;
	std::vector<double> total(count), next(count);
	Bytes result(terms[0].size());

	for (size_t r = 0; r < terms.size(); r++) {
		order_le(terms[r].data(), count, size);
		expect(!spyre_format_decode(format, terms[r].data(), count, next.data()),
		       spyre_last_error());
		for (size_t i = 0; i < count; i++)
			total[i] = r ? static_cast<float>(total[i]) + static_cast<float>(next[i])
				     : next[i];
	}
	expect(!spyre_format_encode(format, total.data(), count, result.data()),
	       spyre_last_error());
	order_le(result.data(), count, size);
	return result;
}

void check_broadcasts(Card &card, Context &world)
{
	for (int root = 0; root < world.getSize(); root++) {
		DeviceTensor t(card, Type::float16, {4, 96}, pattern(world.getRank(), root, 1024));

		finish(world.broadcast(t.tensor, root));
		expect(t.read() == pattern(root, root, 1024), "broadcast");
	}
	DeviceTensor t(card, Type::float32, {LARGE_STICKS * 32},
		       pattern(world.getRank(), 9, LARGE_STICKS * 128));

	finish(world.broadcast(t.tensor, 1));
	expect(t.read() == pattern(1, 9, LARGE_STICKS * 128), "broadcast of a large tensor");
}

void check_gathers(Card &card, Context &world)
{
	int rank = world.getRank(), size = world.getSize();
	DeviceTensor input(card, Type::int32, {192}, pattern(rank, 1, 768));
	std::vector<DeviceTensor> memory;
	std::vector<Tensor> outputs, none;

	memory.reserve(size);
	for (int r = 0; r < size; r++) {
		memory.emplace_back(card, Type::int32, std::vector<int64_t>{192}, Bytes(768));
		memory.back().tensor.SetSpyreDeviceAddressBorrowed(&memory.back().memory);
		outputs.push_back(memory.back().tensor);
	}
	finish(world.allgather(outputs, input.tensor));
	for (int r = 0; r < size; r++)
		expect(memory[r].read() == pattern(r, 1, 768), "allgather");

	DeviceTensor other(card, Type::int32, {192}, pattern(rank, 2, 768));

	finish(world.gather(rank == 1 ? outputs : none, other.tensor, 1));
	for (int r = 0; r < size; r++)
		expect(memory[r].read() == pattern(r, rank == 1 ? 2 : 1, 768), "gather");
}

void check_sums(Card &card, Context &world)
{
	int rank = world.getRank(), size = world.getSize();
	std::vector<Bytes> half, large, single;

	for (int r = 0; r < size; r++) {
		half.push_back(dl16_term(r, 65536));
		large.push_back(dl16_term(r, (8192 + 3) * 64));
		single.push_back(fp32_term(r, 96));
	}

	DeviceTensor a(card, Type::float16, {1024, 64}, half[rank]);
	DeviceTensor b(card, Type::bfloat16, {8195, 64}, large[rank]);
	DeviceTensor c(card, Type::float32, {96}, single[rank]);
	DeviceTensor d(card, Type::float16, {1024, 64}, half[rank]);

	finish(world.allreduce(a.tensor, SpyreReductionOpType::SUM));
	expect(a.read() == sum_of(half, SPYRE_FORMAT_SEN169_FP16), "allreduce of DL16");
	finish(world.allreduce(b.tensor, SpyreReductionOpType::SUM));
	expect(b.read() == sum_of(large, SPYRE_FORMAT_SEN169_FP16), "allreduce of two pieces");
	finish(world.allreduce(c.tensor, SpyreReductionOpType::SUM));
	expect(c.read() == sum_of(single, SPYRE_FORMAT_IEEE_FP32), "allreduce of fp32");
	finish(world.reduce(d.tensor, SpyreReductionOpType::SUM, 1));
	expect(d.read() == (rank == 1 ? sum_of(half, SPYRE_FORMAT_SEN169_FP16) : half[rank]),
	       "reduce");
}

/* Sends that are larger than what may be on its way, before any receive, and tags in another
 * order: neither may block. */
void check_messages(Card &card, Context &world)
{
	int rank = world.getRank(), size = world.getSize();
	int next = (rank + 1) % size, previous = (rank + size - 1) % size;
	std::vector<int64_t> shape = {LARGE_STICKS * 64};
	size_t bytes = LARGE_STICKS * 128;
	DeviceTensor out[2] = {{card, Type::float16, shape, pattern(rank, 11, bytes)},
			       {card, Type::float16, shape, pattern(rank, 12, bytes)}};
	DeviceTensor in[2] = {{card, Type::float16, shape, Bytes(bytes)},
			      {card, Type::float16, shape, Bytes(bytes)}};
	std::shared_ptr<WorkSchedule> sends[2], receives[2];

	for (int i = 0; i < 2; i++) {
		out[i].tensor.SetSpyreDeviceAddressBorrowed(&out[i].memory);
		in[i].tensor.SetSpyreDeviceAddressBorrowed(&in[i].memory);
	}
	for (int i = 0; i < 2; i++) {
		sends[i] = world.send(out[i].tensor, next, i);
		sends[i]->start();
	}
	for (int i = 1; i >= 0; i--) {
		receives[i] = world.recv(in[i].tensor, previous, i);
		finish(receives[i]);
		expect(in[i].read() == pattern(previous, 11 + i, bytes), "message");
	}
	for (int i = 0; i < 2; i++)
		sends[i]->wait();
}

/* Operations that are all started before the first is waited for. */
void check_overlap(Card &card, Context &world)
{
	std::vector<std::unique_ptr<DeviceTensor>> tensors;
	std::vector<std::shared_ptr<WorkSchedule>> works;

	for (int i = 0; i < 8; i++) {
		tensors.push_back(std::make_unique<DeviceTensor>(card, Type::float16,
								 std::vector<int64_t>{64},
								 pattern(world.getRank(), i, 128)));
		works.push_back(world.broadcast(tensors[i]->tensor, i % world.getSize()));
		works.back()->start();
	}
	for (int i = 7; i >= 0; i--)
		while (!works[i]->query())
			usleep(1000);
	for (int i = 0; i < 8; i++)
		expect(tensors[i]->read() == pattern(i % world.getSize(), i, 128), "overlap");
}

/* None of these takes part in the group: the next operations still match. */
void check_refusals(Card &card, Context &world)
{
	DeviceTensor good(card, Type::float16, {128}, Bytes(256));
	DeviceTensor number(card, Type::int32, {32}, Bytes(128));
	DeviceTensor decimal(card, Type::decimal32, {32}, Bytes(128));
	DeviceTensor view(card, Type::float16, {64}, Bytes(512));
	Tensor empty(TensorInfo(Type::float16, TensorShape({64})));
	std::vector<Tensor> few;
	SpyreReductionOpType sum = SpyreReductionOpType::SUM;

	expect_error([&] { world.broadcast(good.tensor, world.getSize() + 10); },
		     {"is not in the group"});
	expect_error([&] { world.reduce(good.tensor, sum, -1); }, {"rank -1 is not in the group"});
	expect_error([&] { world.broadcast(decimal.tensor, 0); }, {"decimal32"});
	expect_error([&] { world.allreduce(number.tensor, sum); }, {"int32"});
	expect_error([&] { world.allreduce(good.tensor, SpyreReductionOpType::UNSUPPORTED); },
		     {"UNSUPPORTED"});
	expect_error([&] { world.broadcast(view.tensor, 0); }, {"512 bytes of its allocation"});
	expect_error([&] { world.broadcast(empty, 0); }, {"no device address"});
	expect_error([&] { world.allgather(few, good.tensor); }, {"0 outputs for"});
	expect_error([&] { world.send(good.tensor, world.getRank(), 0); }, {"is this rank"});
	expect_error([&] { world.barrier()->wait(); }, {"call start() first"});
}

void collectives()
{
	Card card;
	std::shared_ptr<Context> world = join(card);

	expect(world->getRank() == atoi(getenv("RANK")), "rank");
	expect(world->getSize() == atoi(getenv("WORLD_SIZE")), "size");
	finish(world->barrier());
	check_refusals(card, *world);
	check_broadcasts(card, *world);
	check_gathers(card, *world);
	check_sums(card, *world);
	check_messages(card, *world);
	check_overlap(card, *world);

	std::shared_ptr<WorkSchedule> barrier = world->barrier();

	finish(barrier);
	expect_error([&] { barrier->start(); }, {"started before"});

	/* Each torch.distributed group initialises the library; the last one ends it. */
	initialize_library(card.context, card.stream);
	finalize_library();
	expect(get_world_context() == world, "the group ended too early");
	finalize_library();
	expect(get_world_context() == nullptr, "the group has not ended");
	expect_no_start(world->barrier(), "left the group");

	world = join(card);
	finish(world->barrier());
	finalize_library();
}

/* One operation of each kind, of a few sticks: an emulated machine takes long for more. */
void brief()
{
	Card card;
	std::shared_ptr<Context> world = join(card);
	int rank = world->getRank(), other = 1 - rank;
	std::vector<Bytes> terms = {dl16_term(0, 256), dl16_term(1, 256)};
	DeviceTensor sum(card, Type::float16, {256}, terms[rank]);
	DeviceTensor out(card, Type::float16, {64}, pattern(rank, 3, 128));
	DeviceTensor in(card, Type::float16, {64}, Bytes(128));
	std::shared_ptr<WorkSchedule> send = world->send(out.tensor, other, 0);

	send->start();
	finish(world->recv(in.tensor, other, 0));
	send->wait();
	expect(in.read() == pattern(other, 3, 128), "message");
	finish(world->allreduce(sum.tensor, SpyreReductionOpType::SUM));
	expect(sum.read() == sum_of(terms, SPYRE_FORMAT_SEN169_FP16), "allreduce");
	check_gathers(card, *world);
	check_overlap(card, *world);
	finalize_library();
}

void sums()
{
	Card card;
	std::shared_ptr<Context> world = join(card);
	std::vector<Bytes> reversed;

	check_sums(card, *world);
	/* They would differ in another order. */
	for (int r = world->getSize(); r--;)
		reversed.push_back(fp32_term(r, 96));
	std::vector<Bytes> terms(reversed.rbegin(), reversed.rend());

	expect(sum_of(terms, SPYRE_FORMAT_IEEE_FP32) != sum_of(reversed, SPYRE_FORMAT_IEEE_FP32),
	       "the order of the terms makes no difference");
	finalize_library();
}

void single()
{
	Card card;
	std::shared_ptr<Context> world = join(card);
	Bytes data = pattern(0, 0, 256);
	DeviceTensor a(card, Type::float16, {128}, data);
	DeviceTensor b(card, Type::float16, {128}, Bytes(256));
	std::vector<Tensor> outputs = {b.tensor};

	finish(world->barrier());
	finish(world->broadcast(a.tensor, 0));
	finish(world->allreduce(a.tensor, SpyreReductionOpType::SUM));
	expect(a.read() == data, "sum of one term");
	finish(world->allgather(outputs, a.tensor));
	expect(b.read() == data, "gather of one input");
	finalize_library();
}

/* The last rank is killed while its operation runs. */
void killed()
{
	Card card;
	std::shared_ptr<Context> world = join(card);
	int last = world->getSize() - 1;
	DeviceTensor t(card, Type::float16, {LARGE_STICKS * 64}, Bytes(LARGE_STICKS * 128));
	std::shared_ptr<WorkSchedule> work;

	finish(world->barrier());
	if (world->getRank() == last) {
		world->broadcast(t.tensor, last)->start();
		raise(SIGKILL);
	}
	/* Messages of the killed rank that have arrived are used. */
	expect_error(
		[&] {
			finish(world->broadcast(t.tensor, last));
			finish(world->allreduce(t.tensor, SpyreReductionOpType::SUM));
		},
		{"has ended", "has failed"});
	expect_no_start(world->barrier(), "has failed");
	finalize_library();
}

/*
 * A rank that is killed after messages which are never received, and which fill the inbox
 * of the other rank: sends to it fail, although its last message remains in the ring.
 */
void killed_unread()
{
	Card card;
	std::shared_ptr<Context> world = join(card);
	/* One piece, and one that fits a ring. */
	DeviceTensor large(card, Type::float16, {524288}, Bytes(1048576));
	DeviceTensor small(card, Type::float16, {65536}, Bytes(131072));

	if (world->getRank() == 1) {
		for (int i = 0; i < 64; i++)
			finish(world->send(large.tensor, 0, 1));
		finish(world->send(small.tensor, 0, 1));
		raise(SIGKILL);
	}
	expect_error(
		[&] {
			for (;;)
				finish(world->send(large.tensor, 1, 2));
		},
		{"has ended"});
	finalize_library();
}

/* A rank that waits for a message, while the one that it waits for is killed. */
void killed_sender()
{
	Card card;
	std::shared_ptr<Context> world = join(card);
	DeviceTensor t(card, Type::float16, {64}, Bytes(128));

	if (world->getRank() == 1)
		raise(SIGKILL);
	expect_error([&] { finish(world->recv(t.tensor, 1, 5)); }, {"has ended"});
	finalize_library();
}

void left()
{
	Card card;
	std::shared_ptr<Context> world = join(card);

	finish(world->barrier());
	if (world->getRank() == 0)
		expect_error([&] { finish(world->barrier()); }, {"left the communicator"});
	finalize_library();
}

/* The ranks run different operations. */
void mismatch()
{
	Card card;
	std::shared_ptr<Context> world = join(card);
	DeviceTensor t(card, Type::float16, {64}, Bytes(128));

	expect_error(
		[&] {
			finish(world->getRank()
				       ? world->allreduce(t.tensor, SpyreReductionOpType::SUM)
				       : world->broadcast(t.tensor, 1));
		},
		{"must call the same collectives"});
	expect(t.read() == Bytes(128), "a failed operation has stopped the caller's stream");
	finalize_library();
}

const std::vector<Scenario> SCENARIOS = {
	{"brief", brief},
	{"collectives", collectives},
	{"single", single},
	{"sums", sums},
	{"killed", killed},
	{"killed_sender", killed_sender},
	{"killed_unread", killed_unread},
	{"left", left},
	{"mismatch", mismatch},
	{"refused", refused},
};

void check_statuses(const std::vector<int> &statuses, const std::vector<int> &expected)
{
	for (size_t r = 0; r < expected.size(); r++)
		ck_assert_msg(statuses[r] == expected[r], "rank %zu ended with %d", r, statuses[r]);
}

/* Joining with these variables fails with @text. */
void check_refused(Environment variables, const char *text)
{
	variables["EXPECTED_ERROR"] = text;
	ck_assert_int_eq(wait_rank(start_rank("refused", variables)), 0);
}
} // namespace

START_TEST(two_ranks_in_brief)
{
	check_statuses(run_ranks("brief", 2), {0, 0});
}
END_TEST

START_TEST(two_ranks)
{
	check_statuses(run_ranks("collectives", 2), {0, 0});
}
END_TEST

START_TEST(three_ranks)
{
	check_statuses(run_ranks("collectives", 3), {0, 0, 0});
}
END_TEST

START_TEST(one_rank)
{
	check_statuses(run_ranks("single", 1), {0});
}
END_TEST

START_TEST(killed_ranks)
{
	check_statuses(run_ranks("killed", 3), {0, 0, -SIGKILL});
	check_statuses(run_ranks("killed_sender", 2), {0, -SIGKILL});
	check_statuses(run_ranks("killed_unread", 2), {0, -SIGKILL});
}
END_TEST

START_TEST(ranks_that_disagree)
{
	check_statuses(run_ranks("left", 2), {0, 0});
	check_statuses(run_ranks("mismatch", 2), {0, 0});
}
END_TEST

START_TEST(environments)
{
	Directory directory;
	Environment good = environment_of(directory, 0, 2), v;

	v = good;
	v["RANK"] = v["LOCAL_RANK"] = "";
	check_refused(v, "RANK and WORLD_SIZE are not set");
	v = good;
	v["RANK"] = "2";
	check_refused(v, "invalid RANK '2': expected 0 to 1");
	v["RANK"] = "1x";
	check_refused(v, "invalid RANK '1x'");
	v = good;
	v["LOCAL_WORLD_SIZE"] = "1";
	check_refused(v, "groups across machines are not supported");
	v = good;
	v["MASTER_PORT"] = "";
	check_refused(v, "MASTER_PORT is not set");
	v = good;
	v["SPYRE_COMMS_TIMEOUT_MS"] = "20";
	check_refused(v, "rank 1 has not come for 20 ms");
	v["RANK"] = "1";
	check_refused(v, "rank 0 has not come for 20 ms");
	chmod(directory.path.c_str(), 0755);
	check_refused(v, "only this user can enter");
}
END_TEST

/* The variables of the vendor's runtime, which contradict each other. */
START_TEST(switches_of_the_way)
{
	Directory directory;
	Environment zero = environment_of(directory, 0, 2), one = environment_of(directory, 1, 2);

	for (Environment *v : {&zero, &one})
		(*v)["FLEX_HDMA_MODE_FULL"] = (*v)["FLEX_RDMA_MODE_FULL"] = "1";
	/* Rank 1 fails like this, or because rank 0 has left. */
	zero["EXPECTED_ERROR"] = "FLEX_HDMA_MODE_FULL and FLEX_RDMA_MODE_FULL are both 1";
	one["EXPECTED_ERROR"] = "cannot";

	pid_t first = start_rank("refused", zero), second = start_rank("refused", one);

	ck_assert_int_eq(wait_rank(first), 0);
	ck_assert_int_eq(wait_rank(second), 0);
}
END_TEST

START_TEST(two_processes_of_one_rank)
{
	Directory directory;
	Environment zero = environment_of(directory, 0, 3), one = environment_of(directory, 1, 3);

	zero["EXPECTED_ERROR"] = "give each process its own RANK";
	one["EXPECTED_ERROR"] = "another rank has ended";

	pid_t pids[] = {start_rank("refused", zero), start_rank("refused", one),
			start_rank("refused", one)};

	for (pid_t pid : pids)
		ck_assert_int_eq(wait_rank(pid), 0);
}
END_TEST

/* Of many terms the order decides a sum of fp32. */
START_TEST(eight_ranks)
{
	check_statuses(run_ranks("sums", 8), std::vector<int>(8, 0));
}
END_TEST

/* Starts and kills a rank 0 of two; returns the path of the socket that it leaves. */
static std::string leave_socket(const Directory &directory)
{
	Environment alone = environment_of(directory, 0, 2);

	alone["EXPECTED_ERROR"] = "another rank has ended";

	pid_t first = start_rank("refused", alone);

	while (directory.entries().empty()) {
		ck_assert_int_eq(waitpid(first, nullptr, WNOHANG), 0);
		usleep(1000);
	}
	kill(first, SIGKILL);
	wait_rank(first);
	ck_assert_int_eq(directory.entries().size(), 1);
	return directory.entries()[0];
}

/* A rank 0 that was killed leaves its socket, which the next one replaces. */
START_TEST(socket_of_a_killed_rank)
{
	Directory directory;
	struct stat info;

	ck_assert_int_eq(stat(leave_socket(directory).c_str(), &info), 0);
	ck_assert(S_ISSOCK(info.st_mode));
	ck_assert_int_eq(info.st_mode & 0777, 0600);

	pid_t zero = start_rank("left", environment_of(directory, 0, 2));
	pid_t one = start_rank("left", environment_of(directory, 1, 2));

	ck_assert_int_eq(wait_rank(zero), 0);
	ck_assert_int_eq(wait_rank(one), 0);
}
END_TEST

/* A rank 0 that has bound its socket but does not listen yet keeps it. */
START_TEST(socket_that_does_not_listen_yet)
{
	Directory directory;
	Environment zero = environment_of(directory, 0, 2);
	std::string path = leave_socket(directory);
	int lock = open(directory.path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int first = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	sockaddr_un address = {};

	zero["EXPECTED_ERROR"] = "Address already in use";
	zero["SPYRE_COMMS_TIMEOUT_MS"] = "20000";
	address.sun_family = AF_UNIX;
	strncpy(address.sun_path, path.c_str(), sizeof(address.sun_path) - 1);
	ck_assert_int_eq(unlink(path.c_str()), 0);
	ck_assert_int_eq(flock(lock, LOCK_EX), 0);
	ck_assert_int_eq(bind(first, reinterpret_cast<sockaddr *>(&address), sizeof(address)), 0);

	pid_t second = start_rank("refused", zero);

	/* Without the lock, it would find and replace the socket now. */
	usleep(500000);
	ck_assert_int_eq(listen(first, 2), 0);
	close(lock);
	ck_assert_int_eq(wait_rank(second), 0);
	ck_assert_int_eq(unlink(path.c_str()), 0);
	close(first);
}
END_TEST

int main(int count, char **arguments)
{
	/* Of the kernel's card, which is shared: the rest does not depend on the kind of card. */
	const TTest *const shared[] = {two_ranks_in_brief, nullptr};
	const TTest *const cases[] = {two_ranks_in_brief,
				      two_ranks,
				      three_ranks,
				      one_rank,
				      eight_ranks,
				      killed_ranks,
				      ranks_that_disagree,
				      environments,
				      switches_of_the_way,
				      two_processes_of_one_rank,
				      socket_of_a_killed_rank,
				      socket_that_does_not_listen_yet,
				      nullptr};

	if (count == 2)
		return run_scenario(arguments[1], SCENARIOS);

	const char *backend = getenv("SPYRE_BACKEND");

	return run_tests("compat_comms", backend && !strcmp(backend, "drm") ? shared : cases);
}
