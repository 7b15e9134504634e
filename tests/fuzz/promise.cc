#include "fuzz/promise.h"

#include <cstdio>
#include <cstdlib>
#include <utility>

namespace drover::fuzz {
namespace {

std::string& input() {
  static std::string name;
  return name;
}

}  // namespace

void name_input(std::string name) { input() = std::move(name); }

void promise(bool kept, const char* what) {
  if (kept) return;
  std::fprintf(stderr, "broken promise: %s %s\n", what, input().c_str());
  std::abort();
}

}  // namespace drover::fuzz
