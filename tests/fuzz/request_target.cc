// Requests to the page's server: without the token, or for another host, the answer has no content.
#include <string>

#include "fuzz/choices.h"
#include "fuzz/promise.h"
#include "fuzz/targets.h"
#include "view/request.h"

namespace drover::fuzz {

void request(Bytes input) {
  Choices choices(input);
  const bool is_get = choices.flip();
  const bool guarded = choices.flip();
  const std::string_view target = text_of(choices.take(choices.below(256)));
  const std::string_view host = text_of(choices.take(choices.below(64)));
  const std::string_view authorization = text_of(choices.take(choices.below(64)));
  const std::string token = guarded ? "a-token-of-this-run" : "";
  const Resource resource = resource_of(
      {.is_get = is_get, .target = target, .host = host, .authorization = authorization}, token);
  if (const auto* refused = std::get_if<Refused>(&resource)) {
    promise(refused->status >= 400 && !refused->message.empty(), "a refusal says why");
    return;
  }
  promise(is_get, "nothing but GET is answered");
  const bool brings_it = target.find(token) != std::string_view::npos ||
                         authorization.find(token) != std::string_view::npos;
  promise(!guarded || brings_it, "without the token nothing is shown");
  promise(guarded || host.starts_with("127.") || host.starts_with("[::1]") || host.size() >= 9,
          "without a token only this machine is a host");
}

}  // namespace drover::fuzz
