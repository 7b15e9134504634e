// What the module is made of: a function for each part, which adds it.
#pragma once

#include <pybind11/pybind11.h>

#include <stdexcept>
#include <string>

namespace drover {

// Expected trouble, as an exception for Python: drover._native.Trouble.
struct Trouble : std::runtime_error {
  using std::runtime_error::runtime_error;
};

void bind_samples(pybind11::module_& module);
void bind_session(pybind11::module_& module);

}  // namespace drover
