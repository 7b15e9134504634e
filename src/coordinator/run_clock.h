// RunClock: the time since a run began, over all incarnations of its coordinator.
#pragma once

#include "core/time.h"

namespace drover {

struct RunClock {
  TimePoint started{};  // of this incarnation
  Duration before{};    // the duration of earlier incarnations

  Duration at(TimePoint now) const { return before + (now - started); }
};

}  // namespace drover
