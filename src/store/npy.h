// Reads a trace from NPY, the file of numpy.save: a matrix of floats, steps by workers; NaN means
// not recorded.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/result.h"
#include "store/trace.h"

namespace drover {

inline constexpr std::string_view kNpyMark = "\x93NUMPY";

// What the header of an NPY file says of a matrix that can be read.
struct NpyMatrix {
  uint64_t rows = 0;
  uint64_t columns = 0;
  bool doubles = true;        // float64; else float32
  bool column_order = false;  // Fortran's: one column after the other
};

// Reads the text of a header, a Python dictionary with descr, fortran_order and shape. The error
// says what is wrong, and what to do with numpy about it.
Result<NpyMatrix> parse_npy_header(std::string_view text);

// The size of the file is checked against the shape before anything is allocated.
Result<Trace> read_npy_trace(const std::string& path);

}  // namespace drover
