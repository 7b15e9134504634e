// Parses and authorizes requests to the dashboard's server, without sockets and runs.
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
  std::string_view host;           // Host header; empty: none
  std::string_view authorization;  // Authorization header; empty: none
};

struct PageResource {};
struct EventsResource {};
struct StepResource {
  Step step = 0;
};
struct MetricsResource {};
struct IconResource {};  // browsers request it automatically
struct Refused {
  unsigned status = 400;  // HTTP status
  std::string message;
};
using Resource = std::variant<PageResource, EventsResource, StepResource, MetricsResource,
                              IconResource, Refused>;

// The requested resource, or why the request is refused. With a token, every request must contain
// it. Without one, the Host header must name this machine; this prevents DNS rebinding, by which a
// web site could read the run.
Resource resource_of(const PageRequest& request, const std::string& token);

// A token has 8 to 128 letters, digits, '-', '_', '.' and '~', so that it needs no escaping.
Status check_token(std::string_view token);

}  // namespace drover
