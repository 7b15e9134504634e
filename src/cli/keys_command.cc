// drover keys: files that let the machines of a run talk in private.
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/run_report.h"
#include "net/tls_keys.h"

namespace drover {

int keys_make_command(const KeysMakeOptions& options) {
  const Status made = make_keys(options.out, {.hosts = options.hosts, .days = options.days});
  if (!made) return fail(made.error());
  const auto news = read_keys(options.out);
  if (!news) return fail(news.error());
  fmt::print(
      "{0}/ca.pem, cert.pem and key.pem are good until {1}.\n"
      "Bring the folder to every machine of the run, where only you can read it, and give\n"
      "  --tls {0}      to drover train, launch or serve\n"
      "  DROVER_TLS={0}  to scripts that somebody else starts\n",
      options.out, news.value().until);
  return 0;
}

int keys_show_command(const KeysShowOptions& options) {
  const auto read = read_keys(options.folder);
  if (!read) return fail(read.error());
  const KeyNews& news = read.value();
  if (options.json) {
    fmt::print("{}\n", nlohmann::json{{"fingerprint", news.fingerprint},
                                      {"authority", news.authority},
                                      {"hosts", news.hosts},
                                      {"from", news.from},
                                      {"until", news.until},
                                      {"expired", news.expired},
                                      {"too_early", news.too_early},
                                      {"others_can_read", news.others_can_read}}
                           .dump());
  } else {
    fmt::print("certificate  {}\nauthority    {}\nhosts        {}\nvalid        {} to {}{}\n",
               news.fingerprint, news.authority,
               news.hosts.empty() ? "(none named)" : fmt::format("{}", fmt::join(news.hosts, ", ")),
               news.from, news.until,
               news.expired     ? ", so it has EXPIRED"
               : news.too_early ? ", so it is NOT VALID YET"
                                : "");
    if (news.others_can_read) {
      fmt::print(
          "Others on this machine can read key.pem, and pass for members: chmod 600 {}/key.pem\n",
          options.folder);
    }
  }
  return news.expired || news.too_early ? kExitFailed : 0;
}

}  // namespace drover
