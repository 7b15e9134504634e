// drover keys: makes and shows the key files with which a run's machines encrypt connections.
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/run_report.h"
#include "net/tls_keys.h"

namespace drover {
namespace {

// Keys for TLS between a run's machines.
struct KeysMakeOptions {
  std::string out;
  std::vector<std::string> hosts;
  int days = 30;
};

struct KeysShowOptions {
  std::string folder;
  bool json = false;
};

int keys_make_command(const KeysMakeOptions& options) {
  const Status made = make_keys(options.out, {.hosts = options.hosts, .days = options.days});
  if (!made) return fail(made.error());
  const auto written = read_keys(options.out);
  if (!written) return fail(written.error());
  fmt::print(
      "{0}/ca.pem, cert.pem and key.pem are valid until {1}.\n"
      "Copy the folder to every machine of the run, readable only by you, and use\n"
      "  --tls {0}       with drover train, launch or serve\n"
      "  DROVER_TLS={0}  for scripts that another launcher starts\n",
      options.out, written.value().until);
  return 0;
}

int keys_show_command(const KeysShowOptions& options) {
  const auto read = read_keys(options.folder);
  if (!read) return fail(read.error());
  const KeyInfo& keys = read.value();
  if (options.json) {
    fmt::print("{}\n", nlohmann::json{{"fingerprint", keys.fingerprint},
                                      {"authority", keys.authority},
                                      {"hosts", keys.hosts},
                                      {"from", keys.from},
                                      {"until", keys.until},
                                      {"expired", keys.expired},
                                      {"too_early", keys.too_early},
                                      {"others_can_read", keys.others_can_read}}
                           .dump());
  } else {
    fmt::print("certificate  {}\nauthority    {}\nhosts        {}\nvalid        {} to {}{}\n",
               keys.fingerprint, keys.authority,
               keys.hosts.empty() ? "(none named)" : fmt::format("{}", fmt::join(keys.hosts, ", ")),
               keys.from, keys.until,
               keys.expired     ? " (EXPIRED)"
               : keys.too_early ? " (NOT VALID YET)"
                                : "");
    if (keys.others_can_read) {
      fmt::print(
          "warning: other users of this machine can read key.pem and impersonate a process of the "
          "run; run: chmod 600 {}/key.pem\n",
          options.folder);
    }
  }
  return keys.expired || keys.too_early ? kExitFailed : 0;
}

}  // namespace

void add_keys_commands(CommandTable& commands) {
  CommandGroup group =
      commands.add_group("keys", "Make and show the keys that encrypt a run's connections");
  {
    auto [app, options] = group.add<KeysMakeOptions>("make", "Make keys for the machines of a run",
                                                     keys_make_command);
    app.add_option("--out", options.out, "folder for ca.pem, cert.pem and key.pem")
        ->required()
        ->type_name("DIR");
    app.add_option("--host", options.hosts,
                   "machine names or addresses to record in the certificate; not checked")
        ->type_name("NAME");
    app.add_option("--days", options.days, "days until the keys expire")
        ->check(CLI::Range(1, 3650))
        ->type_name("COUNT")
        ->capture_default_str();
  }
  {
    auto [app, options] =
        group.add<KeysShowOptions>("show", "Show hosts and validity of keys", keys_show_command);
    app.add_option("DIR", options.folder, "folder of the keys")->required()->type_name("DIR");
    app.add_flag("--json", options.json, "print a JSON object instead of text");
  }
}

}  // namespace drover
