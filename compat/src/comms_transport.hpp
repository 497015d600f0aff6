/* SPDX-License-Identifier: MIT */
/* Messages between the ranks of a group, through rings in the memory that they share. */
#ifndef SPYRE_COMMS_TRANSPORT_HPP
#define SPYRE_COMMS_TRANSPORT_HPP

#include <compare>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>

#include "comms_group.hpp"

namespace spyre_comms
{

/** Largest number of bytes in one message. Tensors are sent in pieces of this size. */
constexpr uint64_t PIECE_BYTES = 1048576;

/** Purposes of messages: the id of the communicator, and sends. */
constexpr uint32_t LANE_ID = 0, LANE_MESSAGES = 1;

/** Numbers of the operations. Messages are of sends, except for that of the id. */
enum class Kind : uint32_t { Broadcast, AllGather, Gather, AllReduce, Reduce, Barrier, Send };

/** Finds the message for an operation: both sides count their operations. */
struct Key {
	uint32_t lane;
	int32_t tag;
	uint64_t sequence;
	/** Of the piece in the tensor, in bytes. */
	uint64_t offset;

	auto operator<=>(const Key &) const = default;
};

/** Equal on both ranks of a message; others are an error of the program. */
struct Call {
	Kind kind;
	int32_t type;	/**< TensorDataTypeEnum */
	int32_t root;	/**< -1 for none */
	uint64_t bytes; /**< of the tensor */

	bool operator==(const Call &) const = default;

	/** "broadcast of 256 bytes of float16 from rank 0". */
	std::string text() const;
};

struct Message {
	Key key;
	Call call;
	std::vector<uint8_t> data;
};

/**
 * Sends and receives for the threads of this process; a thread of its own moves the bytes.
 * All functions throw std::runtime_error when a rank that they wait for is gone.
 */
class Transport
{
public:
	explicit Transport(const Place &place);

	/** Leaves the group. Messages that were not flushed may be lost. */
	~Transport();

	/** Queues a message; waits while too many bytes are queued. */
	void send(int to, Message message);

	/** Waits until all messages to @to have left this process. */
	void flush(int to);

	/** Returns the message of @from with @key, waits for it if necessary. */
	Message receive(int from, const Key &key);

	/** Makes all calls of this and the other processes that wait for this rank fail. */
	void fail();

	/** Makes waits of this process fail. */
	void close();

private:
	/** The beginning of each message in a ring. */
	struct Header {
		uint32_t magic;
		uint32_t bytes;
		Key key;
		Call call;
	};

	struct Peer {
		std::deque<Message> outgoing;
		size_t outgoing_bytes = 0;
		/** Of outgoing.front(), header included. */
		size_t pushed = 0;

		std::map<Key, Message> inbox;
		/** Cost of the messages in the inbox, see cost_of(). */
		size_t inbox_bytes = 0;
		/** Messages that receives wait for, and which are not in the inbox. */
		std::set<Key> wanted;
		Header header;
		Message incoming;
		size_t pulled = 0;

		/** Reason for which nothing more is sent to the rank; empty otherwise. */
		std::string deaf;
		/** Reason for which nothing more is received from it; empty otherwise. Implies @deaf. */
		std::string gone;
	};

	void run();
	bool move(int rank);
	bool push(int rank, Peer &peer);
	bool pull(int rank, Peer &peer);
	bool accept_header(int rank, Peer &peer);
	void accept_message(int rank, Peer &peer);
	void cut_off(int rank, Peer &peer, const std::string &why);
	std::string name(int rank);

	Group group;
	/** Protects the peers and flags; @changed tells the threads that wait about them. */
	std::mutex lock;
	std::condition_variable changed;
	std::vector<Peer> peers;
	bool closing = false, stopping = false;
	std::thread mover;
};

} // namespace spyre_comms

#endif /* SPYRE_COMMS_TRANSPORT_HPP */
