// SPDX-License-Identifier: MIT
/* Messages between the ranks of a group, through rings in the memory that they share. */
#include "comms_transport.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "comms_thread.hpp"
#include "comms_types.hpp"

namespace spyre_comms
{

namespace
{

constexpr uint32_t MAGIC = 0x53434d73;

/*
 * Bytes to one rank, or from one before they are asked for, that may wait in this process. A
 * rank that has sent more than the second has to wait, unless a receive needs a later message:
 * one that has then sent more than the third has failed.
 */
constexpr size_t MAX_QUEUED = 4 * PIECE_BYTES;
constexpr size_t MAX_INBOX = 64 * PIECE_BYTES;
constexpr size_t MAX_PASSED = 4096 * PIECE_BYTES;

/* The number of messages is bounded as well: each takes some hundred bytes besides its data. */
size_t cost_of(const Message &message)
{
	return message.data.size() + 16384;
}

/* Throws @why, or that this rank has left if that is empty. */
[[noreturn]] void give_up(const std::string &why, const std::string &operation)
{
	throw std::runtime_error("cannot " + operation + ": " +
				 (why.empty() ? "this rank has left the group" : why));
}

/* Copies between @part and the ring's bytes from @at on, which wrap around. */
template <typename Byte, typename Copy>
void at_ring(uint64_t at, Byte *part, size_t bytes, Copy copy)
{
	size_t begin = at % RING_BYTES;
	size_t first = std::min(bytes, RING_BYTES - begin);

	copy(begin, part, first);
	copy(0, part + first, bytes - first);
}

} // namespace

std::string Call::text() const
{
	static const char *const NAMES[] = {"broadcast",       "allgather", "gather",
					    "allreduce",       "reduce",    "barrier",
					    "send and receive"};
	uint32_t number = static_cast<uint32_t>(kind);

	if (number >= std::size(NAMES))
		return "unknown operation " + std::to_string(number);
	if (kind == Kind::Barrier)
		return NAMES[number];

	std::string text = NAMES[number];

	text += " of " + std::to_string(bytes) + " bytes of " +
		name_of(static_cast<TensorDataTypeEnum>(type));
	if (root >= 0)
		text += " with root " + std::to_string(root);
	return text;
}

Transport::Transport(const Place &place) : group(place), peers(place.size)
{
	mover = start_thread([this] { run(); });
}

Transport::~Transport()
{
	{
		std::lock_guard<std::mutex> guard(lock);

		closing = stopping = true;
		changed.notify_all();
	}
	group.ring_bell(group.rank);
	mover.join();
	if (group.page(group.rank).state == RANK_ATTACHED)
		group.page(group.rank).state = RANK_LEFT;
	for (int r = 0; r < group.size; r++)
		if (r != group.rank)
			group.ring_bell(r);
}

std::string Transport::name(int rank)
{
	return "rank " + std::to_string(rank) + " (process " +
	       std::to_string(group.page(rank).pid) + ") ";
}

void Transport::send(int to, Message message)
{
	std::unique_lock<std::mutex> guard(lock);
	Peer &peer = peers[to];

	changed.wait(guard, [&] {
		return closing || !peer.deaf.empty() || peer.outgoing_bytes < MAX_QUEUED;
	});
	if (closing || !peer.deaf.empty())
		give_up(peer.deaf, "send to rank " + std::to_string(to));
	peer.outgoing_bytes += cost_of(message);
	peer.outgoing.push_back(std::move(message));
	guard.unlock();
	group.ring_bell(group.rank);
}

void Transport::flush(int to)
{
	std::unique_lock<std::mutex> guard(lock);
	Peer &peer = peers[to];

	changed.wait(guard, [&] { return closing || !peer.deaf.empty() || peer.outgoing.empty(); });
	if (!peer.outgoing.empty())
		give_up(peer.deaf, "send to rank " + std::to_string(to));
}

Message Transport::receive(int from, const Key &key)
{
	std::unique_lock<std::mutex> guard(lock);
	Peer &peer = peers[from];
	auto found = peer.inbox.find(key);

	if (found == peer.inbox.end()) {
		peer.wanted.insert(key);
		group.ring_bell(group.rank);
		changed.wait(guard, [&] {
			found = peer.inbox.find(key);
			return found != peer.inbox.end() || closing || !peer.gone.empty();
		});
		peer.wanted.erase(key);
	}
	if (found == peer.inbox.end())
		give_up(peer.gone, "receive from rank " + std::to_string(from));

	Message message = std::move(found->second);

	peer.inbox.erase(found);
	peer.inbox_bytes -= cost_of(message);
	guard.unlock();
	group.ring_bell(group.rank);
	return message;
}

void Transport::fail()
{
	group.page(group.rank).state = RANK_FAILED;
	for (int r = 0; r < group.size; r++)
		group.ring_bell(r);
}

void Transport::close()
{
	std::lock_guard<std::mutex> guard(lock);

	closing = true;
	changed.notify_all();
}

void Transport::run()
{
	for (;;) {
		uint32_t bell = group.page(group.rank).bell;
		bool moved = false;

		{
			std::lock_guard<std::mutex> guard(lock);

			for (int r = 0; r < group.size; r++)
				if (r != group.rank)
					moved |= move(r);
			if (moved)
				changed.notify_all();
			if (stopping)
				return;
		}
		if (!moved)
			group.wait_bell(bell);
	}
}

bool Transport::move(int rank)
{
	Peer &peer = peers[rank];

	if (!peer.gone.empty())
		return false;

	/* Looked up before the last bytes are read: a rank writes first, and then it is gone. */
	uint32_t state = group.page(rank).state;
	bool ended = state == RANK_ATTACHED && group.ended(rank);

	/* Sends fail at once, receives when the ring is empty. */
	if (peer.deaf.empty() && (ended || state != RANK_ATTACHED)) {
		peer.deaf = name(rank) + (ended			 ? "has ended"
					  : state == RANK_FAILED ? "has failed; see its error"
								 : "has left the group");
		return true;
	}

	bool moved = peer.deaf.empty() && push(rank, peer);

	moved |= pull(rank, peer);
	/* Messages that no receive has asked for may still be in the ring. */
	if (moved || peer.deaf.empty() ||
	    group.ring(rank, group.rank).written != group.ring(rank, group.rank).read)
		return moved;
	peer.gone = peer.deaf;
	return true;
}

bool Transport::push(int rank, Peer &peer)
{
	Ring &ring = group.ring(group.rank, rank);
	uint64_t written = ring.written.load(std::memory_order_relaxed);
	uint64_t before = written;

	while (!peer.outgoing.empty()) {
		Message &message = peer.outgoing.front();
		Header header = {MAGIC, static_cast<uint32_t>(message.data.size()), message.key,
				 message.call};
		bool in_header = peer.pushed < sizeof(Header);
		const uint8_t *part = in_header
					      ? reinterpret_cast<uint8_t *>(&header) + peer.pushed
					      : message.data.data() + peer.pushed - sizeof(Header);
		size_t left = (in_header ? sizeof(Header) : sizeof(Header) + message.data.size()) -
			      peer.pushed;
		uint64_t used = written - ring.read.load(std::memory_order_acquire);
		size_t bytes = used > RING_BYTES ? 0 : std::min<uint64_t>(left, RING_BYTES - used);

		if (left && !bytes)
			break;
		at_ring(written, part, bytes, [&](size_t at, const uint8_t *from, size_t count) {
			memcpy(ring.data + at, from, count);
		});
		written += bytes;
		peer.pushed += bytes;
		if (peer.pushed == sizeof(Header) + message.data.size()) {
			peer.outgoing_bytes -= cost_of(message);
			peer.outgoing.pop_front();
			peer.pushed = 0;
		}
	}
	if (written == before)
		return false;
	ring.written.store(written, std::memory_order_release);
	group.ring_bell(rank);
	return true;
}

bool Transport::pull(int rank, Peer &peer)
{
	Ring &ring = group.ring(rank, group.rank);
	uint64_t read = ring.read.load(std::memory_order_relaxed);
	uint64_t before = read;
	uint64_t ready = ring.written.load(std::memory_order_acquire) - read;

	if (ready > RING_BYTES) {
		cut_off(rank, peer, "has damaged the shared memory");
		return true;
	}
	while (ready && peer.gone.empty() &&
	       peer.inbox_bytes < (peer.wanted.empty() ? MAX_INBOX : MAX_PASSED)) {
		bool in_header = peer.pulled < sizeof(Header);
		uint8_t *part = in_header
					? reinterpret_cast<uint8_t *>(&peer.header) + peer.pulled
					: peer.incoming.data.data() + peer.pulled - sizeof(Header);
		size_t left =
			(in_header ? sizeof(Header) : sizeof(Header) + peer.incoming.data.size()) -
			peer.pulled;
		size_t bytes = std::min<uint64_t>(left, ready);

		at_ring(read, part, bytes, [&](size_t at, uint8_t *to, size_t count) {
			memcpy(to, ring.data + at, count);
		});
		read += bytes;
		ready -= bytes;
		peer.pulled += bytes;
		if (in_header && peer.pulled == sizeof(Header) && !accept_header(rank, peer))
			break;
		if (peer.pulled == sizeof(Header) + peer.incoming.data.size())
			accept_message(rank, peer);
	}
	if (read == before)
		return false;
	ring.read.store(read, std::memory_order_release);
	group.ring_bell(rank);
	return true;
}

/* Nothing more is read from a rank that does not keep to the protocol, nor sent to it. */
void Transport::cut_off(int rank, Peer &peer, const std::string &why)
{
	peer.gone = peer.deaf = name(rank) + why;
}

bool Transport::accept_header(int rank, Peer &peer)
{
	const Header &header = peer.header;
	uint64_t offset = header.key.offset, bytes = header.call.bytes;

	/* Only a barrier has messages without data. */
	if (header.magic != MAGIC || offset % PIECE_BYTES || offset > bytes ||
	    header.bytes != std::min(PIECE_BYTES, bytes - offset)) {
		cut_off(rank, peer, "has sent a malformed message");
		return false;
	}
	peer.incoming.key = header.key;
	peer.incoming.call = header.call;
	peer.incoming.data.resize(header.bytes);
	return true;
}

void Transport::accept_message(int rank, Peer &peer)
{
	Key key = peer.incoming.key;
	size_t cost = cost_of(peer.incoming);

	if (!peer.inbox.emplace(key, std::move(peer.incoming)).second)
		return cut_off(rank, peer, "has sent a message twice");
	peer.incoming = {};
	peer.pulled = 0;
	peer.inbox_bytes += cost;
	peer.wanted.erase(key);
	if (peer.inbox_bytes >= MAX_PASSED)
		cut_off(rank, peer,
			"has sent more than " + std::to_string(MAX_PASSED) +
				" bytes that no receive has asked for; start the receives in the "
				"order of the sends");
}

} // namespace spyre_comms
