// NumberType: the encoding of a block's numbers on a connection. Gradients may be sent with 16
// bits. Parameters and sums are always float32.
//
// bfloat16 has float32's range with 8 bits of precision. float16 has 11 bits of precision; values
// beyond 65,504 become infinity, which shards refuse. Both round to nearest, ties to even.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace drover {

enum class NumberType : uint8_t { kFloat32 = 0, kBfloat16 = 1, kFloat16 = 2 };

std::string_view name_of(NumberType type);
constexpr size_t bytes_of(NumberType type) { return type == NumberType::kFloat32 ? 4 : 2; }

// Convert to and from a 16-bit type. REQUIRES: equal sizes; type is not kFloat32.
void narrow(NumberType type, std::span<const float> from, std::span<uint16_t> to);
void widen(NumberType type, std::span<const uint16_t> from, std::span<float> to);

}  // namespace drover
