// Job files: an accepted job is written and read again as the same job.
#include "fuzz/promise.h"
#include "fuzz/targets.h"
#include "job/job_file.h"
#include "job/settings.h"
#include "job/validation.h"

namespace drover::fuzz {

void job(Bytes input) {
  const std::string_view text = text_of(input);
  // These policies would read a model file of any name.
  if (text.find("bayes") != std::string_view::npos) return;
  const auto read = parse_job(text, "an input");
  if (!read) {
    promise(!read.error().message.empty(), "a refusal says why");
    return;
  }
  const Status valid = validate(read.value());
  promise(valid.ok() || !valid.error().message.empty(), "a refusal says why");
  const std::string written = to_toml(read.value());
  const auto again = parse_job(written, "what was written");
  promise(again.ok(), "what was taken is taken again");
  promise(to_toml(again.value()) == written, "a job stays what it is");
}

}  // namespace drover::fuzz
