// drover policies: lists the policies that --policy accepts.
#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "policy/catalogue.h"

namespace drover {
namespace {

struct PoliciesOptions {
  bool json = false;
};

int policies_command(const PoliciesOptions& options) {
  size_t width = 0;
  for (const PolicyInfo& info : policies()) width = std::max(width, info.name.size());
  for (const PolicyInfo& info : policies()) {
    if (options.json) {
      const nlohmann::ordered_json json = {
          {"name", info.name}, {"summary", info.summary}, {"options", info.options}};
      fmt::print("{}\n", json.dump());
      continue;
    }
    fmt::print("{:<{}}  {}\n", info.name, width, info.summary);
    if (!info.options.empty()) fmt::print("{:<{}}  {}\n", "", width, info.options);
  }
  if (!options.json) {
    fmt::print(
        "\nSyntax: NAME or NAME:OPTION:OPTION, where an option is KEY=VALUE or only a value.\n");
  }
  return 0;
}

}  // namespace

void add_policies_command(CommandTable& commands) {
  auto [app, options] =
      commands.add<PoliciesOptions>("policies", "List the policies for --policy", policies_command);
  app.add_flag("--json", options.json, "print one JSON object per policy");
}

}  // namespace drover
