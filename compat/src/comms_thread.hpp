/* SPDX-License-Identifier: MIT */
/* Threads of this library. */
#ifndef SPYRE_COMMS_THREAD_HPP
#define SPYRE_COMMS_THREAD_HPP

#include <pthread.h>
#include <signal.h>

#include <thread>
#include <utility>

namespace spyre_comms
{

/** Starts a thread that receives no signals: they belong to the threads of the program. */
template <typename Function> std::thread start_thread(Function function)
{
	struct Restore {
		~Restore()
		{
			pthread_sigmask(SIG_SETMASK, &mask, nullptr);
		}

		sigset_t mask;
	} before;
	sigset_t all;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before.mask);
	return std::thread(std::move(function));
}

} // namespace spyre_comms

#endif /* SPYRE_COMMS_THREAD_HPP */
