// NumberType: how the numbers of a block are written on a connection. Sums and parameters are
// float32 in any case; gradients may travel in half of that.
//
// bfloat16 has float32's range with 8 bits of precision; float16 has 11 bits, and turns what is
// beyond 65,504 into infinity, which shards refuse. Both round to the nearest, ties to even.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace drover {

enum class NumberType : uint8_t { kFloat32 = 0, kBfloat16 = 1, kFloat16 = 2 };

std::string_view name_of(NumberType type);
constexpr size_t bytes_of(NumberType type) { return type == NumberType::kFloat32 ? 4 : 2; }

// To and from one of the two short types. REQUIRES: equal sizes; type is not kFloat32.
void narrow(NumberType type, std::span<const float> from, std::span<uint16_t> to);
void widen(NumberType type, std::span<const uint16_t> from, std::span<float> to);

}  // namespace drover
