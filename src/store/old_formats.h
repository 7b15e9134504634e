// Run files of formats 2 to 4, which have events, peers and a model's state only as text: what that
// text means. The one place that reads meaning out of text.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/event.h"
#include "core/peer.h"
#include "core/result.h"

namespace drover {

// The event has the kind and the peer; its payload is empty, and the text is kept as it is. An
// Error: no format had such a kind.
Result<EventRecord> event_of_text(Duration at, Step step, std::string_view kind,
                                  std::string_view peer, std::string text);

// Whether the reason of a decision says that the learned model was disabled.
bool says_that_model_is_stale(std::string_view reason);

}  // namespace drover
