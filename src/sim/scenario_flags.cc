#include "sim/scenario_flags.h"

#include <fmt/format.h>

#include <array>
#include <string_view>

namespace drover {
namespace {

// Settings of a job that a simulation refuses, since it cannot apply them.
struct OnlyLive {
  std::string_view key;
  std::string_view why;
};
constexpr std::array<OnlyLive, 6> kOnlyLive = {
    {{"slow", "slows down real workers; use [[slow]] in the scenario for simulated ones"},
     {"save_model", "a simulation saves no model, only its run file"},
     {"transport", "a simulation has no sockets; use [[link]] in the scenario"},
     {"listen", "a simulation has no sockets; use [[link]] in the scenario"},
     {"tls", "a simulation has no sockets, and nothing to encrypt"},
     {"insecure", "a simulation has no sockets, and nothing to encrypt"}}};

Status check_can_be_simulated(const std::string& path, const GivenFlags& flags, const Job& job) {
  for (const auto& [key, why] : kOnlyLive) {
    if (!flags.contains(key)) continue;
    return invalid_input(fmt::format("{}: {}", flag_of(*find_setting(key)), why));
  }
  if (!job.record.save_model.empty())
    return invalid_input(path + ": save_model: a simulation saves no model, only its run file");
  return done();
}

}  // namespace

Result<ScenarioFile> scenario_of(const std::string& path, const GivenFlags& flags) {
  auto file = read_scenario_file(path);
  if (!file) return file;
  Job& job = file.value().job;
  if (const Status status = check_can_be_simulated(path, flags, job); !status)
    return status.error();
  if (const Status status = apply_flags(flags, job); !status) return status.error();
  place_workers(file.value());
  if (const Status status = validate(file.value().scenario, job); !status)
    return invalid_input(path + ": " + status.error().message);
  return file;
}

}  // namespace drover
