// SPDX-License-Identifier: MIT
/* Rendezvous of the processes of a group, and the memory that they then share. */
#include "comms_group.hpp"

#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <climits>
#include <cstdlib>
#include <deque>
#include <thread>
#include <utility>

#include "comms_fd.hpp"

namespace spyre_comms
{

namespace
{

using Clock = std::chrono::steady_clock;

constexpr uint32_t PROTOCOL = 0x53434d31; /* changes with Segment and Message */

/* Limits of connected processes that have not sent their rank: their number, and the time. */
constexpr size_t MAX_UNKNOWN = MAX_RANKS;
constexpr int HELLO_MS = 5000;

/** First message of a rank to rank 0. The others are single bytes. */
struct Hello {
	uint32_t protocol;
	int32_t rank;
	int32_t size;
};

[[noreturn]] void fail_ended()
{
	throw std::runtime_error(
		"cannot join the group of processes: another rank has ended or has "
		"failed to join; see its error");
}

/* Ends the rendezvous if it takes too long. */
class Deadline
{
public:
	explicit Deadline(const Place &whose)
	    : place(whose), end(Clock::now() + std::chrono::milliseconds(whose.timeout_ms))
	{
	}

	/* Waits until @fd can be read. */
	void wait(const Fd &fd, const std::string &missing) const
	{
		std::vector<pollfd> entries = {{fd.get(), POLLIN, 0}};

		wait_any(entries, Clock::time_point::max(), missing);
	}

	/* Waits until one of @entries can be read, or until @pause; poll() skips those of -1. */
	void wait_any(std::vector<pollfd> &entries, Clock::time_point pause,
		      const std::string &missing) const
	{
		for (;;) {
			Clock::time_point now = Clock::now();

			if (now >= end)
				expire(missing);
			if (now >= pause)
				return;

			auto left = std::chrono::ceil<std::chrono::milliseconds>(
				std::min(end, pause) - now);
			int ready = poll(entries.data(), entries.size(), left.count());

			if (ready > 0)
				return;
			if (ready < 0 && errno != EINTR)
				fail_errno("wait for the other processes of the group");
		}
	}

	/* Before an attempt is repeated. */
	void pause(const std::string &missing) const
	{
		if (Clock::now() >= end)
			expire(missing);
		std::this_thread::sleep_for(std::chrono::milliseconds(2));
	}

private:
	[[noreturn]] void expire(const std::string &missing) const
	{
		throw std::runtime_error("cannot join the group of " + std::to_string(place.size) +
					 " processes as rank " + std::to_string(place.rank) + ": " +
					 missing + " for " + std::to_string(place.timeout_ms) +
					 " ms; start all ranks, or set SPYRE_COMMS_TIMEOUT_MS");
	}

	const Place &place;
	const Clock::time_point end;
};

/* A directory that only this user can enter: sockets in it need no further protection. */
std::string directory()
{
	const char *runtime = getenv("XDG_RUNTIME_DIR");
	std::string path =
		runtime && *runtime ? runtime : "/tmp/spyre-comms-" + std::to_string(geteuid());
	struct stat info;

	if (!(runtime && *runtime) && mkdir(path.c_str(), 0700) && errno != EEXIST)
		fail_errno("create " + path);
	if (lstat(path.c_str(), &info))
		fail_errno("use " + path);
	if (!S_ISDIR(info.st_mode) || info.st_uid != geteuid() || (info.st_mode & 077))
		throw std::runtime_error("cannot meet the other processes of the group in " + path +
					 ": it is not a directory that only this user can enter; "
					 "remove it, or set XDG_RUNTIME_DIR to one with mode 0700");
	return path;
}

sockaddr_un address_of(const Place &place)
{
	std::string path = directory() + "/spyre-comms-" + place.name;
	sockaddr_un address = {};

	if (path.size() >= sizeof(address.sun_path))
		throw std::runtime_error("cannot listen at " + path + ": the path has " +
					 std::to_string(path.size()) + " bytes, at most " +
					 std::to_string(sizeof(address.sun_path) - 1) +
					 " are possible; set XDG_RUNTIME_DIR to a shorter one");
	address.sun_family = AF_UNIX;
	memcpy(address.sun_path, path.c_str(), path.size());
	return address;
}

Fd new_socket()
{
	Fd fd(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));

	if (!fd)
		fail_errno("create a socket");
	return fd;
}

int try_connect(const Fd &fd, const sockaddr_un &address)
{
	return ::connect(fd.get(), reinterpret_cast<const sockaddr *>(&address), sizeof(address));
}

ucred peer_of(const Fd &fd)
{
	ucred peer;
	socklen_t size = sizeof(peer);

	if (getsockopt(fd.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size))
		fail_errno("identify a process of the group");
	return peer;
}

void send_bytes(const Fd &to, const void *data, size_t size, int passed = -1)
{
	iovec part = {const_cast<void *>(data), size};
	alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
	msghdr message = {};

	message.msg_iov = &part;
	message.msg_iovlen = 1;
	if (passed >= 0) {
		message.msg_control = control;
		message.msg_controllen = sizeof(control);

		cmsghdr *header = CMSG_FIRSTHDR(&message);

		header->cmsg_level = SOL_SOCKET;
		header->cmsg_type = SCM_RIGHTS;
		header->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(header), &passed, sizeof(int));
	}
	if (sendmsg(to.get(), &message, MSG_NOSIGNAL) != static_cast<ssize_t>(size))
		fail_errno("join the group of processes: another rank has ended");
}

/* Returns the descriptor that came with the bytes, if any. Throws if the socket is closed. */
Fd receive_bytes(const Fd &from, void *data, size_t size, const Deadline &deadline,
		 const std::string &missing)
{
	iovec part = {data, size};
	alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
	msghdr message = {};

	message.msg_iov = &part;
	message.msg_iovlen = 1;
	message.msg_control = control;
	message.msg_controllen = sizeof(control);
	deadline.wait(from, missing);

	ssize_t count = recvmsg(from.get(), &message, MSG_CMSG_CLOEXEC);
	Fd passed;
	cmsghdr *header = count >= 0 ? CMSG_FIRSTHDR(&message) : nullptr;

	if (header && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS) {
		int fd;

		memcpy(&fd, CMSG_DATA(header), sizeof(int));
		passed = Fd(fd);
	}
	if (count != static_cast<ssize_t>(size))
		fail_ended();
	return passed;
}

/*
 * Accepts processes until all ranks are there. One that has connected but does not say which
 * rank it is holds up no other, and is closed after a while.
 */
class Admission
{
public:
	Admission(const Fd &at, const Place &whose, const Deadline &until)
	    : socket(whose.size), pid(whose.size), listener(at), place(whose), deadline(until)
	{
	}

	void run()
	{
		for (int r = missing(); r; r = missing())
			step("rank " + std::to_string(r) + " has not come");
	}

	/* By rank. */
	std::vector<Fd> socket;
	std::vector<pid_t> pid;

private:
	/* A process whose first message has not come yet. */
	struct Unknown {
		Fd socket;
		pid_t pid;
		Clock::time_point end;
	};

	int missing() const;
	void step(const std::string &awaited);
	void accept();
	void admit(Unknown process);

	const Fd &listener;
	const Place &place;
	const Deadline &deadline;
	/* In the order of their ends. */
	std::deque<Unknown> unknown;
};

/* The lowest rank that has not come, 0 if all have. */
int Admission::missing() const
{
	for (int r = 1; r < place.size; r++)
		if (!socket[r])
			return r;
	return 0;
}

void Admission::step(const std::string &awaited)
{
	std::vector<pollfd> entries = {{listener.get(), POLLIN, 0}};

	for (const Fd &known : socket)
		entries.push_back({known.get(), POLLIN, 0});
	for (const Unknown &process : unknown)
		entries.push_back({process.socket.get(), POLLIN, 0});
	deadline.wait_any(entries,
			  unknown.empty() ? Clock::time_point::max() : unknown.front().end,
			  awaited);

	auto entry = entries.begin() + 1;

	/* Ranks say nothing until all are there. */
	for (int r = 0; r < place.size; r++)
		if ((entry++)->revents)
			fail_ended();
	for (std::deque<Unknown> before = std::exchange(unknown, {}); Unknown &process : before)
		if ((entry++)->revents)
			admit(std::move(process));
		else if (Clock::now() < process.end)
			unknown.push_back(std::move(process));
	if (entries[0].revents)
		accept();
}

void Admission::accept()
{
	Fd accepted(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));

	if (!accepted)
		fail_errno("accept a process of the group");

	ucred peer = peer_of(accepted);

	if (peer.uid != geteuid())
		return;
	if (unknown.size() == MAX_UNKNOWN)
		unknown.pop_front();
	unknown.push_back({std::move(accepted), peer.pid,
			   Clock::now() + std::chrono::milliseconds(HELLO_MS)});
}

void Admission::admit(Unknown process)
{
	Hello hello;

	/* The rank 0 of another group that tries the same name closes its connection. */
	if (recv(process.socket.get(), &hello, sizeof(hello), MSG_DONTWAIT) != sizeof(hello))
		return;

	std::string intruder =
		"cannot join the group of processes: process " + std::to_string(process.pid);

	if (hello.protocol != PROTOCOL)
		throw std::runtime_error(intruder + " has another version of this library");
	if (hello.size != place.size || hello.rank < 1 || hello.rank >= place.size)
		throw std::runtime_error(intruder + " is rank " + std::to_string(hello.rank) +
					 " of " + std::to_string(hello.size) +
					 ", this is rank 0 of " + std::to_string(place.size));
	if (socket[hello.rank])
		throw std::runtime_error(intruder + " is rank " + std::to_string(hello.rank) +
					 ", as process " + std::to_string(pid[hello.rank]) +
					 " already is; give each process its own RANK");
	if (process.pid <= 0)
		throw std::runtime_error(intruder + " is in another PID namespace; start all "
						    "processes in one container");
	socket[hello.rank] = std::move(process.socket);
	pid[hello.rank] = process.pid;
}

/*
 * Locks the directory of the sockets until the descriptor is closed. A socket that is bound but
 * does not listen yet looks like one of which the process has ended, so that a rank 0 does both,
 * and removes what is left of another one, with this lock held.
 */
Fd lock_directory(const Deadline &deadline)
{
	std::string path = directory();
	Fd lock(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));

	if (!lock)
		fail_errno("open " + path);
	while (flock(lock.get(), LOCK_EX | LOCK_NB)) {
		if (errno != EWOULDBLOCK && errno != EINTR)
			fail_errno("lock " + path);
		deadline.pause("another process has locked " + path);
	}
	return lock;
}

/* Binds @socket, after removing a socket of which the process has ended. */
void bind_at(const Fd &socket, const sockaddr_un &address)
{
	const sockaddr *general = reinterpret_cast<const sockaddr *>(&address);
	std::string path = address.sun_path;
	/* The mode of the socket before bind() is that of the file. */
	int result = fchmod(socket.get(), 0600);

	if (!result)
		result = bind(socket.get(), general, sizeof(address));
	if (result && errno == EADDRINUSE) {
		Fd probe = new_socket();

		if (try_connect(probe, address) && errno == ECONNREFUSED && !unlink(path.c_str()))
			result = bind(socket.get(), general, sizeof(address));
		else
			errno = EADDRINUSE;
	}
	if (result)
		fail_errno("listen at " + path + " as rank 0");
}

/* Removes the socket when the rendezvous ends. */
struct Name {
	~Name()
	{
		unlink(path.c_str());
	}

	std::string path;
};

} // namespace

Group::Group(const Place &place)
    : rank(place.rank), size(place.size),
      bytes(sizeof(Segment) + sizeof(Ring) * place.size * place.size),
      segment(nullptr, Unmap{bytes}), process(size)
{
	if (rank)
		connect(place);
	else
		listen(place);
}

void Group::Unmap::operator()(Segment *mapping) const
{
	munmap(mapping, bytes);
}

void Group::listen(const Place &place)
{
	Deadline deadline(place);
	sockaddr_un address = address_of(place);
	Fd listener = new_socket();
	Admission ranks(listener, place, deadline);
	Fd lock = lock_directory(deadline);

	bind_at(listener, address);

	Name name = {address.sun_path};

	if (::listen(listener.get(), size))
		fail_errno("listen at " + name.path + " as rank 0");
	lock = Fd();

	Fd memory(memfd_create("spyre-comms", MFD_CLOEXEC | MFD_ALLOW_SEALING));

	if (!memory || ftruncate(memory.get(), bytes) ||
	    fcntl(memory.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
		fail_errno("create " + std::to_string(bytes) + " bytes of shared memory");
	map(memory.get());
	ranks.run();
	page(0).pid = getpid();
	for (int r = 1; r < size; r++)
		page(r).pid = ranks.pid[r];
	watch();

	char byte = 0;

	for (int r = 1; r < size; r++)
		send_bytes(ranks.socket[r], &byte, 1, memory.get());
	/* Each rank has found all others alive, so the numbers of their processes were right. */
	for (int r = 1; r < size; r++)
		receive_bytes(ranks.socket[r], &byte, 1, deadline,
			      "rank " + std::to_string(r) + " has not attached");
	for (int r = 1; r < size; r++)
		send_bytes(ranks.socket[r], &byte, 1);
}

void Group::connect(const Place &place)
{
	Deadline deadline(place);
	sockaddr_un address = address_of(place);
	Hello hello = {PROTOCOL, rank, size};
	Fd socket = new_socket();
	char byte;

	while (try_connect(socket, address)) {
		if (errno != ENOENT && errno != ECONNREFUSED && errno != EINTR && errno != EAGAIN)
			fail_errno(std::string("connect to rank 0 at ") + address.sun_path);
		deadline.pause("rank 0 has not come");
	}
	if (peer_of(socket).uid != geteuid())
		throw std::runtime_error(std::string("cannot connect to rank 0 at ") +
					 address.sun_path + ": it belongs to another user");
	send_bytes(socket, &hello, sizeof(hello));

	Fd memory = receive_bytes(socket, &byte, 1, deadline, "other ranks have not come");
	check(memory);
	map(memory.get());
	watch();
	send_bytes(socket, &byte, 1);
	receive_bytes(socket, &byte, 1, deadline, "other ranks have not attached");
}

/* Memory that shrinks later would end this process with SIGBUS. */
void Group::check(const Fd &memory) const
{
	/* Looked up first: a sealed size is final. */
	int seals = memory ? fcntl(memory.get(), F_GET_SEALS) : -1;
	struct stat info;

	if (seals < 0 || fstat(memory.get(), &info) || static_cast<size_t>(info.st_size) != bytes)
		throw std::runtime_error("cannot join the group of processes: rank 0 has not "
					 "passed a memfd of " +
					 std::to_string(bytes) + " bytes");
	if (!(seals & F_SEAL_SHRINK))
		throw std::runtime_error("cannot join the group of processes: the memfd of rank 0 "
					 "is not sealed: its size could change");
}

void Group::map(int memory)
{
	void *start = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);

	if (start == MAP_FAILED)
		fail_errno("map " + std::to_string(bytes) + " bytes of shared memory");
	segment.reset(static_cast<Segment *>(start));
}

void Group::watch()
{
	for (int r = 0; r < size; r++) {
		if (r == rank)
			continue;
		process[r] = Fd(syscall(SYS_pidfd_open, page(r).pid, 0));
		if (!process[r])
			fail_errno("watch process " + std::to_string(page(r).pid) + " of rank " +
				   std::to_string(r));
	}
}

void Group::ring_bell(int of)
{
	page(of).bell.fetch_add(1);
	syscall(SYS_futex, &page(of).bell, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

void Group::wait_bell(uint32_t value)
{
	timespec limit = {0, 20000000};

	syscall(SYS_futex, &page(rank).bell, FUTEX_WAIT, value, &limit, nullptr, 0);
}

bool Group::ended(int other) const
{
	pollfd entry = {process[other].get(), POLLIN, 0};

	return other != rank && poll(&entry, 1, 0) > 0;
}

} // namespace spyre_comms
