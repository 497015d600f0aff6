// SPDX-License-Identifier: MIT
/* Waiting for the card without Python's lock, if this thread has it. */
#pragma once

#include <Python.h>

namespace torch_spyre {

class ReleaseGil {
public:
	ReleaseGil()
		: state(Py_IsInitialized() && PyGILState_Check() ? PyEval_SaveThread() : nullptr)
	{
	}
	~ReleaseGil()
	{
		if (state)
			PyEval_RestoreThread(state);
	}
	ReleaseGil(const ReleaseGil &) = delete;
	ReleaseGil &operator=(const ReleaseGil &) = delete;

private:
	PyThreadState *state;
};

} // namespace torch_spyre
