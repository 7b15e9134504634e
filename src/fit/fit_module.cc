#include "fit/fit_module.h"

#include <dlfcn.h>

#include "core/program_module.h"
#include "fit/fit_entry.h"

namespace drover {

Result<FitFunction> load_fit_function() {
  const ModuleName name{kFitModuleFile, "the library for model fitting is", "drover_fit"};
  const Result<ProgramModule> module = open_program_module(name);
  if (!module.ok()) return module.error();
  void* const handle = module.value().handle;
  const auto interface =
      reinterpret_cast<FitInterfaceEntry>(::dlsym(handle, kFitInterfaceFunction));
  const auto fit = reinterpret_cast<FitEntry>(::dlsym(handle, kFitFunction));
  if (interface == nullptr || fit == nullptr || interface() != kFitInterface) {
    return module_of_another_build(name, module.value());
  }
  return FitFunction([fit](const FitRequest& request, const FitListener& listener) {
    FitCall call{&request, &listener, std::nullopt};
    fit(call);
    return std::move(call.answer).value();
  });
}

}  // namespace drover
