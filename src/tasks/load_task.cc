#include "tasks/load_task.h"

#include <dlfcn.h>

#include "tasks/data/load_dataset.h"
#include "tasks/data/sample_stream.h"
#include "tasks/model_choice.h"
#include "tasks/module_entry.h"
#include "tasks/torch_module.h"

namespace drover {

Result<std::unique_ptr<Task>> load_task(const TaskSpec& spec) {
  if (Status known = check_model_name(spec.model); !known.ok()) return known.error();
  Result<Dataset> dataset = load_dataset(spec);
  if (!dataset.ok()) return dataset.error();
  if (Status fits = check_model_fits(spec.model, dataset.value()); !fits.ok()) return fits.error();

  if (Status cut = check_partition(spec.partition, dataset.value()); !cut.ok()) return cut.error();

  const Result<ProgramModule> module = open_torch_module();
  if (!module.ok()) return module.error();
  const auto make_task =
      reinterpret_cast<ModuleFunction>(::dlsym(module.value().handle, kModuleFunction));
  ModuleRequest request;
  request.spec = spec;
  request.data = std::make_shared<const Dataset>(std::move(dataset).value());
  if (make_task != nullptr) make_task(request);
  if (!request.answer) return module_of_another_build(torch_module_name(), module.value());
  return std::move(*request.answer);
}

}  // namespace drover
