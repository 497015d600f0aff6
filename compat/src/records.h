/* SPDX-License-Identifier: MIT */
/*
 * Reports of libflex to a profiler. libflex calls the recorder that is registered, if any;
 * it does not know libaiupti, which registers one.
 */
#ifndef SPYRE_COMPAT_RECORDS_H
#define SPYRE_COMPAT_RECORDS_H

#include <cstdint>

#include <flex/export.h>

namespace spyre_compat
{

/** A call into libflex that takes time on the calling thread. */
enum class Call {
	Initialize,   /**< the card is opened */
	Launch,       /**< a program is queued */
	CopyToDevice, /**< a copy is queued */
	CopyToHost,
	Fill,     /**< a fill is queued */
	Allocate, /**< device memory */
	Release,
	Callback, /**< a function of the caller runs */
	Wait,     /**< for a stream */
};

/** A finished call. Times are those of CLOCK_MONOTONIC in nanoseconds. */
struct CallRecord {
	Call call;
	/** Correlation of the work that it queued (spyre_activity_correlate()). */
	std::uint64_t correlation;
	std::uint64_t start_ns, end_ns;
	/** Bytes of copies, fills and memory; programs of a launch. */
	std::uint64_t data;
	/** Device address of memory; 0 if an allocation failed. */
	std::uint64_t address;
};

/** Functions of a profiler, called by any thread. */
struct Recorder {
	/**
	 * The work of @correlation has this name. Comes before the work is queued, and thus
	 * before its activity record. @text is valid during the call only.
	 */
	void (*name)(std::uint64_t correlation, const char *text) noexcept;
	void (*call)(const CallRecord &record) noexcept;
};

/**
 * Replaces the recorder, nullptr for none. A report that has begun may still reach the
 * previous one, which is therefore a static object of a library that is never unloaded.
 */
COMPAT_EXPORT void set_recorder(const Recorder *recorder) noexcept;

/**
 * Reports the rest of the block that it is declared in as a call, and gives the work that
 * this thread queues in it a correlation of its own. A call within a call is reported too.
 */
class CallReport
{
public:
	explicit CallReport(Call call, std::uint64_t data = 0, const char *name = nullptr) noexcept;
	~CallReport();
	CallReport(const CallReport &) = delete;
	CallReport &operator=(const CallReport &) = delete;

	void set_address(std::uint64_t address) noexcept
	{
		record_.address = address;
	}

private:
	/* nullptr if none was registered at the start. */
	const Recorder *recorder_;
	std::uint64_t outer_ = 0;
	CallRecord record_ = {};
};

} // namespace spyre_compat

#endif /* SPYRE_COMPAT_RECORDS_H */
