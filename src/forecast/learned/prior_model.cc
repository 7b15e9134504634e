#include "forecast/learned/prior_model.h"

#include <string_view>
#include <utility>

#include "core/check.h"
#include "forecast/learned/model_file.h"

// Embeds the file, so that the program needs no other file at run time.
asm(R"(
  .pushsection .rodata
  .global drover_prior_begin
  .global drover_prior_end
drover_prior_begin:
  .incbin ")" DROVER_PRIOR_FILE R"("
drover_prior_end:
  .popsection
)");
extern "C" const char drover_prior_begin[];
extern "C" const char drover_prior_end[];

namespace drover {

std::shared_ptr<const ModelWeights> prior_model() {
  const std::string_view bytes(drover_prior_begin,
                               static_cast<size_t>(drover_prior_end - drover_prior_begin));
  Result<ModelWeights> weights = decode_model(bytes, "the built-in model");
  DROVER_CHECK(weights.ok());
  return std::make_shared<const ModelWeights>(std::move(weights).value());
}

}  // namespace drover
