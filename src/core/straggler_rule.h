// StragglerRule: what becomes of the work of those whom a step did not wait for.
#pragma once

#include <cstdint>

namespace drover {

enum class StragglerRule : uint8_t {
  kStop,    // it is left off, and its worker starts on the newest parameters
  kFinish,  // it is finished, and comes too late
};

}  // namespace drover
