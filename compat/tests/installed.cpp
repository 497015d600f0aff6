// SPDX-License-Identifier: MIT
/* A program of make installcheck: the installed headers and libflex suffice. */
#include <flex/flex.hpp>
#include <spyrecode-host-functions/fast_process_hcm.h>
#include <spyrecode-host-functions/processSpyreCodeArtifacts.h>
#include <spyrecode-host-functions/sendataconvert/sen_data_convert.h>
#include <spyrecode-host-functions/sendataconvert/sen_host_ops.h>
#include <spyrecode-host-functions/spyrecode.h>
#include <util/sendefs/sendefs.h>

#include <iostream>
#include <memory>

int main()
{
	std::shared_ptr<flex::RuntimeContext> runtime;

	std::cout << flex::initializeRuntime(&runtime, 0) << '\n';
	if (!runtime)
		return 1;
	const flex::CompositeAddress device = runtime->getAllocator()->allocate(
		128, { flex::PlacementPolicy::Bind, { 0 }, std::nullopt,
		       flex::MemoryType::Tensor });
	runtime->getDefaultStream()->fillAsync(&device, 1, DataFormats::IEEE_FP32, true);
	runtime->getDefaultStream()->synchronize();
	return dataFormatToStickSize[DataFormats::SEN169_FP16] == 64 ? 0 : 1;
}
