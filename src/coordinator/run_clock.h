// RunClock: how long a run has been going on, over all incarnations of its coordinator.
#pragma once

#include "core/time.h"

namespace drover {

struct RunClock {
  TimePoint started{};  // this incarnation
  Duration before{};    // that the run had been going on by then

  Duration at(TimePoint now) const { return before + (now - started); }
};

}  // namespace drover
