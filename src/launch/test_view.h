// SilentView: a view of a run that shows nothing, for tests that start a run in their own process.
#pragma once

#include "launch/launcher.h"
#include "node/test_observer.h"

namespace drover {

class SilentView : public Silent<RunView> {
  void tick() override {}
};

}  // namespace drover
