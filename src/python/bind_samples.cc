#include <pybind11/stl.h>

#include <cstdint>
#include <vector>

#include "core/random_draw.h"
#include "python/bindings.h"

namespace drover {
namespace {

std::vector<uint64_t> sample_indices(uint64_t seed, uint64_t first, uint64_t count,
                                     uint64_t dataset_size) {
  if (dataset_size == 0) throw Trouble("a data set without samples");
  std::vector<uint64_t> indices;
  indices.reserve(count);
  for (uint64_t position = first; position < first + count; ++position)
    indices.push_back(sample_at(seed, dataset_size, position));
  return indices;
}

}  // namespace

void bind_samples(pybind11::module_& module) {
  using pybind11::arg;
  module.def("sample_indices", &sample_indices, arg("seed"), arg("first"), arg("count"),
             arg("dataset_size"),
             "Which samples stand at positions first, first + 1, ... of the run's stream of "
             "samples: every epoch is a permutation of the data set.");
}

}  // namespace drover
