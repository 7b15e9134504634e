// Requests are parsed, and authorized by token or host.
#include "view/request.h"

#include <gtest/gtest.h>

namespace drover {
namespace {

Resource ask(std::string_view target, std::string_view host = "127.0.0.1:8410",
             const std::string& token = "", std::string_view authorization = "") {
  return resource_of({true, target, host, authorization}, token);
}

unsigned status_of(const Resource& resource) {
  const auto* refused = std::get_if<Refused>(&resource);
  return refused == nullptr ? 200 : refused->status;
}

TEST(Request, NamesAResource) {
  EXPECT_TRUE(std::holds_alternative<PageResource>(ask("/")));
  EXPECT_TRUE(std::holds_alternative<PageResource>(ask("/?anything")));
  EXPECT_TRUE(std::holds_alternative<EventsResource>(ask("/api/events")));
  EXPECT_EQ(std::get<StepResource>(ask("/api/step/12")).step, 12u);
  for (const char* target : {"", "x", "/api", "/api/events/", "/../etc/passwd", "/index.html"})
    EXPECT_EQ(status_of(ask(target)), 404u) << target;
  for (const char* target : {"/api/step/", "/api/step/-1", "/api/step/1x", "/api/step/1/2",
                             "/api/step/18446744073709551615", "/api/step/99999999999999999999"})
    EXPECT_EQ(status_of(ask(target)), 400u) << target;
}

TEST(Request, MustBeGet) {
  EXPECT_EQ(status_of(resource_of({false, "/", "localhost", ""}, "")), 405u);
}

TEST(Request, MustNameThisMachineAsHostWithoutAToken) {
  for (const char* host :
       {"127.0.0.1", "localhost:9", "LocalHost", "[::1]:8410", "[::1]", "127.0.0.9:1"})
    EXPECT_EQ(status_of(ask("/", host)), 200u) << host;
  for (const char* host : {"", "evil.example", "127.0.0.1.evil.example", "localhost.evil.example:1",
                           "192.168.0.1", "[::2]", "127.evil:8410"})
    EXPECT_EQ(status_of(ask("/", host)), 403u) << host;
  EXPECT_EQ(status_of(ask("/?token=secret-1", "box.example", "secret-1")), 200u);
}

TEST(Request, HasTheTokenInTheUrlOrInAHeader) {
  const std::string token = "secret-token";
  for (const char* target : {"/?token=secret-token", "/?a=b&token=secret-token&c"})
    EXPECT_EQ(status_of(ask(target, "h", token)), 200u) << target;
  for (const char* target : {"/", "/?token=", "/?token=secret-toke", "/?token=secret-tokens",
                             "/?tokens=secret-token", "/?", "/?&&", "/secret-token"})
    EXPECT_EQ(status_of(ask(target, "127.0.0.1", token)), 401u) << target;
  EXPECT_EQ(status_of(ask("/", "h", token, "Bearer secret-token")), 200u);
  EXPECT_EQ(status_of(ask("/", "h", token, "Bearer wrong")), 401u);
  EXPECT_EQ(status_of(ask("/", "h", token, "Basic secret-token")), 401u);
}

TEST(Token, NeedsNoEscaping) {
  EXPECT_TRUE(check_token("abcDEF-1_2.3~"));
  EXPECT_TRUE(check_token(std::string(128, 'a')));
  for (const std::string& token :
       {std::string(), std::string("short"), std::string(129, 'a'), std::string("with space"),
        std::string("amp&ersand"), std::string("umlautäö")})
    EXPECT_FALSE(check_token(token)) << token;
}

}  // namespace
}  // namespace drover
