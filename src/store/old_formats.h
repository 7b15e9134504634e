// Run files of formats 2 to 4, which have events, peers and the model's state only as text. This is
// the only code that interprets text.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/event.h"
#include "core/peer.h"
#include "core/result.h"

namespace drover {

// An event with kind, peer and the recorded text; its payload is empty. An Error if no format had
// such a kind.
Result<EventRecord> event_of_text(Duration at, Step step, std::string_view kind,
                                  std::string_view peer, std::string text);

// Whether the reason of a decision says that the learned model was disabled (stale).
bool says_that_model_is_stale(std::string_view reason);

}  // namespace drover
