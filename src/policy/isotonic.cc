#include "policy/isotonic.h"

#include <vector>

#include "core/check.h"

namespace drover {

void make_ascending(std::span<double> values, std::span<const double> weights) {
  DROVER_CHECK(values.size() == weights.size());
  struct Pool {
    double mean;
    double weight;
    size_t end;
  };
  std::vector<Pool> pools;
  for (size_t i = 0; i < values.size(); ++i) {
    Pool pool{values[i], weights[i], i + 1};
    while (!pools.empty() && pools.back().mean > pool.mean) {
      const Pool before = pools.back();
      pools.pop_back();
      const double weight = before.weight + pool.weight;
      pool.mean = (before.mean * before.weight + pool.mean * pool.weight) / weight;
      pool.weight = weight;
    }
    pools.push_back(pool);
  }
  size_t begin = 0;
  for (const Pool& pool : pools) {
    for (; begin < pool.end; ++begin) values[begin] = pool.mean;
  }
}

}  // namespace drover
