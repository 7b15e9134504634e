#include "view/request.h"

#include <algorithm>
#include <cctype>
#include <charconv>

namespace drover {
namespace {

constexpr std::string_view kStepPath = "/api/step/";
constexpr Step kStepMax = uint64_t{1} << 53;  // the largest exact integer in JavaScript

// Compares in constant time, so that timing does not reveal the token.
bool equal_secrets(std::string_view given, std::string_view token) {
  unsigned char differs = given.size() == token.size() ? 0 : 1;
  for (size_t i = 0; i < token.size(); ++i) {
    const char other = i < given.size() ? given[i] : '\0';
    differs = static_cast<unsigned char>(differs | (other ^ token[i]));
  }
  return differs == 0;
}

std::string_view given_token(const PageRequest& request) {
  constexpr std::string_view kBearer = "Bearer ";
  if (request.authorization.starts_with(kBearer))
    return request.authorization.substr(kBearer.size());
  const size_t question = request.target.find('?');
  if (question == std::string_view::npos) return {};
  constexpr std::string_view kKey = "token=";
  for (std::string_view rest = request.target.substr(question + 1); !rest.empty();) {
    const size_t end = std::min(rest.find('&'), rest.size());
    const std::string_view pair = rest.substr(0, end);
    if (pair.starts_with(kKey)) return pair.substr(kKey.size());
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return {};
}

// "localhost:8410" -> "localhost", "[::1]:8410" -> "[::1]"
std::string_view without_port(std::string_view host) {
  const size_t colon = host.rfind(':');
  const size_t bracket = host.rfind(']');
  if (colon == std::string_view::npos) return host;
  if (bracket != std::string_view::npos && colon < bracket) return host;
  return host.substr(0, colon);
}

bool names_this_machine(std::string_view host) {
  std::string name(without_port(host));
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  if (name == "localhost" || name == "[::1]") return true;
  // 127.0.0.0/8. A host name that begins with "127." has letters.
  return name.starts_with("127.") && name.find_first_not_of("0123456789.") == std::string::npos;
}

}  // namespace

Resource resource_of(const PageRequest& request, const std::string& token) {
  if (!request.is_get) return Refused{405, "only GET requests are allowed"};
  if (token.empty() && !names_this_machine(request.host)) {
    return Refused{403,
                   "this server accepts only requests for http://127.0.0.1 or http://localhost. To "
                   "serve other machines, start drover dashboard with --listen and --token"};
  }
  if (!token.empty() && !equal_secrets(given_token(request), token)) {
    return Refused{401,
                   "missing or wrong token: open the URL that drover printed, which ends in "
                   "?token=..., or send the header 'Authorization: Bearer ...'"};
  }
  const std::string_view path = request.target.substr(0, request.target.find('?'));
  if (path == "/") return PageResource{};
  if (path == "/api/events") return EventsResource{};
  if (path == "/metrics") return MetricsResource{};
  if (path == "/favicon.ico") return IconResource{};
  if (path.starts_with(kStepPath)) {
    const std::string_view digits = path.substr(kStepPath.size());
    Step step = 0;
    const auto [stop, trouble] =
        std::from_chars(digits.data(), digits.data() + digits.size(), step);
    if (trouble != std::errc{} || stop != digits.data() + digits.size() || step > kStepMax)
      return Refused{400, "the step must be a whole number, as in /api/step/12"};
    return StepResource{step};
  }
  return Refused{404, "not found; the dashboard is at /"};
}

Status check_token(std::string_view token) {
  const bool plain = std::all_of(token.begin(), token.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.' || c == '~';
  });
  if (plain && token.size() >= 8 && token.size() <= 128) return done();
  return invalid_input(
      "--token: must have 8 to 128 letters, digits, '-', '_', '.' or '~' (openssl rand -hex 16 "
      "generates one)");
}

}  // namespace drover
