#include "policy/catalogue.h"

#include <array>
#include <string>

#include "core/nearest.h"
#include "policy/simple.h"

namespace drover {
namespace {

constexpr std::array kPolicies = {
    PolicyInfo{"sync", "wait for everybody alive", ""},
};

}  // namespace

std::string_view name_of(Objective objective) {
  return objective == Objective::kRate ? "rate" : "throughput";
}

Result<Objective> parse_objective(std::string_view name) {
  for (const Objective each : {Objective::kThroughput, Objective::kRate}) {
    if (name == name_of(each)) return each;
  }
  constexpr std::array<std::string_view, 2> kNames = {"throughput", "rate"};
  return invalid_input("there is no objective '" + std::string(name) + "'." +
                       did_you_mean(name, {kNames.begin(), kNames.end()}));
}

std::span<const PolicyInfo> policies() { return kPolicies; }

Result<std::unique_ptr<Policy>> make_policy(std::string_view text, const PolicySettings&) {
  if (text == "sync") return std::unique_ptr<Policy>(std::make_unique<SyncPolicy>());
  return invalid_input("there is no policy '" + std::string(text) + "'");
}

Result<std::optional<FreeRunning>> free_running_of(std::string_view text) {
  if (text == "sync") return std::optional<FreeRunning>();
  return invalid_input("there is no policy '" + std::string(text) + "'");
}

}  // namespace drover
