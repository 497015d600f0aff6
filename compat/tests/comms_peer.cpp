// SPDX-License-Identifier: MIT
/* libspyre_comms against a process of the same user that does not keep to the protocol. */
#include "check.hpp"

#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <thread>

#include <fcntl.h>

#include "comms_ranks.hpp"
#include "comms_transport.hpp"

using namespace spyre_comms;

namespace
{
/* Rank 0 of two, and rank 1, which is one of Transport and Group, in one process. */
template <typename Peer> struct Pair {
	Pair()
	{
		setenv("XDG_RUNTIME_DIR", directory.path.c_str(), 1);

		std::thread other([this] { peer = std::make_unique<Peer>(place(1)); });

		own = std::make_unique<Transport>(place(0));
		other.join();
	}

	static Place place(int rank)
	{
		Place result;

		result.rank = rank;
		result.size = 2;
		result.name = "pair";
		return result;
	}

	Directory directory;
	std::unique_ptr<Transport> own;
	std::unique_ptr<Peer> peer;
};

/* The message of a barrier, the only one that has no data. */
Message barrier(uint64_t number)
{
	return {{0, 0, number, 0}, {Kind::Barrier, 0, -1, 0}, {}};
}

/* Sends barriers until @count are sent or rank 0 has left. */
std::thread flood(Transport &peer, std::atomic<uint64_t> &sent, uint64_t count)
{
	return std::thread([&peer, &sent, count] {
		try {
			for (; sent < count; sent++)
				peer.send(0, barrier(sent));
		} catch (const std::exception &) {
		}
	});
}

/* The path of the socket of two ranks. */
std::string socket_path(const Directory &directory)
{
	for (const auto &[name, value] : environment_of(directory, 0, 2))
		setenv(name.c_str(), value.c_str(), 1);
	return directory.path + "/spyre-comms-" + Place::from_environment().name;
}

struct Endpoint {
	explicit Endpoint(const std::string &path) : fd(socket(AF_UNIX, SOCK_SEQPACKET, 0))
	{
		address.sun_family = AF_UNIX;
		strncpy(address.sun_path, path.c_str(), sizeof(address.sun_path) - 1);
	}

	const sockaddr *general() const
	{
		return reinterpret_cast<const sockaddr *>(&address);
	}

	Fd fd;
	sockaddr_un address = {};
};

/* Connects to the rank 0 that listens at @path, or soon will. */
Fd connect_to(const std::string &path)
{
	Endpoint end(path);

	while (connect(end.fd.get(), end.general(), sizeof(end.address))) {
		ck_assert_msg(errno == ENOENT || errno == ECONNREFUSED, "%s", strerror(errno));
		usleep(1000);
	}
	return std::move(end.fd);
}

void pass(const Fd &to, int passed)
{
	char byte = 0;
	iovec part = {&byte, 1};
	alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
	msghdr message = {};

	message.msg_iov = &part;
	message.msg_iovlen = 1;
	message.msg_control = control;
	message.msg_controllen = sizeof(control);

	cmsghdr *header = CMSG_FIRSTHDR(&message);

	header->cmsg_level = SOL_SOCKET;
	header->cmsg_type = SCM_RIGHTS;
	header->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(header), &passed, sizeof(int));
	ck_assert_int_eq(sendmsg(to.get(), &message, MSG_NOSIGNAL), 1);
}

/*
 * Rank 1 joins a rank 0 that passes a memfd of @bytes with @seals, and makes it shorter once
 * rank 1 has attached. It must refuse the memory with @error.
 */
void check_memory(size_t bytes, int seals, const char *error)
{
	Directory directory;
	Environment one = environment_of(directory, 1, 2);
	Endpoint listener(socket_path(directory));
	Fd memory(memfd_create("hostile", MFD_CLOEXEC | MFD_ALLOW_SEALING));
	char hello[64], byte = 0;

	ck_assert_int_eq(ftruncate(memory.get(), bytes), 0);
	for (int r = 0; r < 2; r++) {
		int32_t pid = getpid();
		off_t at = offsetof(Segment, rank) + r * sizeof(RankPage) + offsetof(RankPage, pid);

		ck_assert_int_eq(pwrite(memory.get(), &pid, sizeof(pid), at), sizeof(pid));
	}
	ck_assert_int_eq(fcntl(memory.get(), F_ADD_SEALS, seals), 0);
	ck_assert_int_eq(bind(listener.fd.get(), listener.general(), sizeof(listener.address)), 0);
	ck_assert_int_eq(listen(listener.fd.get(), 2), 0);
	one["EXPECTED_ERROR"] = error;

	pid_t pid = start_rank("refused", one);
	Fd rank(accept(listener.fd.get(), nullptr, nullptr));

	ck_assert_int_gt(recv(rank.get(), hello, sizeof(hello), 0), 0);
	pass(rank, memory.get());
	if (recv(rank.get(), &byte, 1, 0) == 1) {
		(void)!ftruncate(memory.get(), 0);
		send(rank.get(), &byte, 1, MSG_NOSIGNAL);
	}
	ck_assert_int_eq(wait_rank(pid), 0);
	unlink(listener.address.sun_path);
}

/* The card is not needed, but each rank that joins has one. */
void meet()
{
	Card card;

	finish(join(card)->barrier());
	finalize_library();
}
} // namespace

/* Messages that no receive has asked for stop at some number, although they have no data. */
START_TEST(flood_of_empty_messages)
{
	constexpr uint64_t MANY = 40000;
	Pair<Transport> pair;
	std::atomic<uint64_t> sent{0};
	std::thread sender = flood(*pair.peer, sent, MANY);
	uint64_t before = MANY;

	/* Too short a pause can hide an error, but makes none. */
	for (; sent < MANY && sent != before; usleep(500000))
		before = sent;
	ck_assert_uint_lt(sent, MANY);
	/* They are all there. */
	for (uint64_t n = 0; n < MANY; n++)
		pair.own->receive(1, barrier(n).key);
	sender.join();
}
END_TEST

/* A receive waits for a message behind others, but not for one behind any number of them. */
START_TEST(flood_before_a_message)
{
	constexpr uint64_t MANY = 265000;
	Pair<Transport> pair;
	std::atomic<uint64_t> sent{0};
	std::thread sender = flood(*pair.peer, sent, MANY);

	ck_throws(pair.own->receive(1, barrier(MANY - 1).key), "has sent more than");
	pair.own.reset();
	sender.join();
}
END_TEST

START_TEST(malformed_messages)
{
	const Message wrong[] = {
		{{1, 0, 0, 0}, {Kind::Send, 0, -1, 128}, {}},
		{{1, 0, 0, 0}, {Kind::Send, 0, -1, 128}, std::vector<uint8_t>(256)},
		{{1, 0, 0, 64}, {Kind::Send, 0, -1, 128}, std::vector<uint8_t>(64)},
		{{1, 0, 0, PIECE_BYTES}, {Kind::Send, 0, -1, 128}, {}},
		{{0, 0, 0, 0}, {Kind::Barrier, 0, -1, 0}, std::vector<uint8_t>(1)},
		{{1, 0, 0, 0},
		 {Kind::Send, 0, -1, 4 * PIECE_BYTES},
		 std::vector<uint8_t>(2 * PIECE_BYTES)},
	};

	for (const Message &message : wrong) {
		Pair<Transport> pair;

		pair.peer->send(0, message);
		pair.peer->send(0, barrier(7));
		ck_throws(pair.own->receive(1, barrier(7).key), "malformed message");
	}

	Pair<Transport> pair;

	for (int i = 0; i < 2; i++)
		pair.peer->send(0, barrier(3));
	pair.peer->send(0, barrier(4));
	ck_throws(pair.own->receive(1, barrier(4).key), "has sent a message twice");
	ck_throws(pair.own->send(1, barrier(0)), "has sent a message twice");
}
END_TEST

START_TEST(damaged_rings)
{
	Pair<Group> pair;

	pair.peer->ring(1, 0).written = RING_BYTES + 1;
	pair.peer->ring_bell(0);
	ck_throws(pair.own->receive(1, barrier(0).key), "has damaged the shared memory");
}
END_TEST

/* Rank 1 uses no memory that rank 0 could still make shorter. */
START_TEST(memory_that_shrinks)
{
	constexpr size_t BYTES = sizeof(Segment) + 4 * sizeof(Ring);

	check_memory(BYTES, F_SEAL_GROW, "is not sealed");
	check_memory(BYTES - 1, F_SEAL_SHRINK, "has not passed a memfd of");
}
END_TEST

/* Connections without a word hold up no rank, and rank 0 closes them. */
START_TEST(silent_connections)
{
	Directory directory;
	Environment zero = environment_of(directory, 0, 2), one = environment_of(directory, 1, 2);
	std::string path = socket_path(directory);
	std::vector<Fd> silent;
	char byte;

	zero["SPYRE_COMMS_TIMEOUT_MS"] = "60000";

	pid_t first = start_rank("meet", zero);

	silent.push_back(connect_to(path));
	ck_assert_int_eq(recv(silent[0].get(), &byte, 1, 0), 0);
	ck_assert_int_eq(waitpid(first, nullptr, WNOHANG), 0);
	for (int i = 0; i < MAX_RANKS + 6; i++)
		silent.push_back(connect_to(path));

	pid_t second = start_rank("meet", one);

	ck_assert_int_eq(wait_rank(first), 0);
	ck_assert_int_eq(wait_rank(second), 0);
}
END_TEST

/* Only root can give another user access to the socket, and start a process of one. */
START_TEST(another_user)
{
	constexpr uid_t OTHER = 65534;
	Directory directory;
	Environment zero = environment_of(directory, 0, 2);
	std::string path = socket_path(directory);
	/* That of rank 1 of two, of the protocol's first version. */
	const uint32_t hello[] = {0x53434d31, 1, 2};
	int status;

	if (geteuid())
		return;

	pid_t first = start_rank("meet", zero);

	connect_to(path);
	chmod(directory.path.c_str(), 0711);
	chmod(path.c_str(), 0666);

	pid_t stranger = fork();

	if (!stranger) {
		char byte;

		if (setuid(OTHER))
			_exit(2);

		Fd fd = connect_to(path);

		/* It may be closed before the message is sent. */
		send(fd.get(), hello, sizeof(hello), MSG_NOSIGNAL);
		_exit(recv(fd.get(), &byte, 1, 0) > 0);
	}
	ck_assert_int_eq(waitpid(stranger, &status, 0), stranger);
	ck_assert_int_eq(status, 0);
	chmod(directory.path.c_str(), 0700);

	pid_t second = start_rank("meet", environment_of(directory, 1, 2));

	ck_assert_int_eq(wait_rank(first), 0);
	ck_assert_int_eq(wait_rank(second), 0);
}
END_TEST

int main(int count, char **arguments)
{
	const TTest *const cases[] = {flood_of_empty_messages, flood_before_a_message,
				      malformed_messages,      damaged_rings,
				      memory_that_shrinks,     silent_connections,
				      another_user,	       nullptr};

	if (count == 2)
		return run_scenario(arguments[1], {{"meet", meet}, {"refused", refused}});
	return run_tests("compat_comms_peer", cases);
}
