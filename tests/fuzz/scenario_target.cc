// Scenario files: they are read or refused.
#include "fuzz/promise.h"
#include "fuzz/targets.h"
#include "sim/scenario_file.h"

namespace drover::fuzz {

void scenario(Bytes input) {
  const std::string_view text = text_of(input);
  // A scenario can name files, which would be read from this machine.
  for (const char* named : {"bayes", "trace"}) {
    if (text.find(named) != std::string_view::npos) return;
  }
  auto read = parse_scenario(text, "an input");
  if (!read) {
    promise(!read.error().message.empty(), "a refusal says why");
    return;
  }
  const Status valid = validate(read.value().scenario, read.value().job);
  promise(valid.ok() || !valid.error().message.empty(), "a refusal says why");
  if (valid) place_workers(read.value());
}

}  // namespace drover::fuzz
