// What a request to the page's server asks for, and whether it may: no sockets, no run.
#pragma once

#include <string>
#include <string_view>
#include <variant>

#include "core/ids.h"
#include "core/result.h"

namespace drover {

struct PageRequest {
  bool is_get = false;
  std::string_view target;         // "/api/step/3?token=..."
  std::string_view host;           // the header; empty: none
  std::string_view authorization;  // the header; empty: none
};

struct WantsPage {};
struct WantsEvents {};
struct WantsStep {
  Step step = 0;
};
struct WantsMetrics {};
struct WantsIcon {};  // browsers ask by themselves
struct Refused {
  unsigned status = 400;  // of HTTP
  std::string message;
};
using Wish = std::variant<WantsPage, WantsEvents, WantsStep, WantsMetrics, WantsIcon, Refused>;

// With a token every request must bring it. Without one the request must name this machine as its
// host: a web site whose name was made to lead here (DNS rebinding) is not to read the run.
Wish wish_of(const PageRequest& request, const std::string& token);

// Letters, digits, '-', '_', '.' and '~', from 8 to 128 of them: a token needs no escaping.
Status check_token(std::string_view token);

}  // namespace drover
