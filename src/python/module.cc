// drover._native: what the Python package needs of the rest.
#include "python/bindings.h"

PYBIND11_MODULE(_native, module) {
  module.doc() = "The native half of drover; use the package's own functions.";
  module.attr("__version__") = DROVER_VERSION;
  pybind11::register_exception<drover::Trouble>(module, "Trouble", PyExc_RuntimeError);
  drover::bind_samples(module);
  drover::bind_session(module);
}
