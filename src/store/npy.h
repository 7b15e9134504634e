// Reads a trace from an NPY file (numpy.save): a matrix of floats, steps by workers. NaN: not
// recorded.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/result.h"
#include "store/trace.h"

namespace drover {

inline constexpr std::string_view kNpyMark = "\x93NUMPY";

// The header of a supported NPY file.
struct NpyMatrix {
  uint64_t rows = 0;
  uint64_t columns = 0;
  bool doubles = true;        // float64; else float32
  bool column_order = false;  // Fortran order: column by column
};

// Parses the text of a header, a Python dictionary with descr, fortran_order and shape. The error
// says what is wrong, and how to correct it with numpy.
Result<NpyMatrix> parse_npy_header(std::string_view text);

// Compares the size of the file with the shape before it allocates memory.
Result<Trace> read_npy_trace(const std::string& path);

}  // namespace drover
