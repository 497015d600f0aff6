/* SPDX-License-Identifier: MIT */
/* Owned file descriptors, and errors of system calls as exceptions. */
#ifndef SPYRE_COMMS_FD_HPP
#define SPYRE_COMMS_FD_HPP

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <string>
#include <utility>

namespace spyre_comms
{

/** Throws "cannot @operation: text of errno". */
[[noreturn]] inline void fail_errno(const std::string &operation)
{
	throw std::runtime_error("cannot " + operation + ": " + strerror(errno));
}

class Fd
{
public:
	Fd() = default;
	explicit Fd(int number) : fd(number)
	{
	}
	Fd(Fd &&other) noexcept : fd(std::exchange(other.fd, -1))
	{
	}
	Fd &operator=(Fd &&other) noexcept
	{
		std::swap(fd, other.fd);
		return *this;
	}
	~Fd()
	{
		if (fd >= 0)
			close(fd);
	}

	int get() const
	{
		return fd;
	}

	explicit operator bool() const
	{
		return fd >= 0;
	}

private:
	int fd = -1;
};

} // namespace spyre_comms

#endif /* SPYRE_COMMS_FD_HPP */
