// Frame: a unit of the protocol as state machines send it: a header, followed by a control message,
// a slice of floats, or nothing.
#pragma once

#include <cstddef>
#include <utility>
#include <variant>

#include "core/float_buffer.h"
#include "wire/control.h"
#include "wire/header.h"

namespace drover {

// Floats that are sent directly from a buffer. The reference keeps the buffer until they are sent.
struct FloatSlice {
  ConstBuffer buffer;
  size_t offset = 0;
  size_t length = 0;

  std::span<const float> span() const { return buffer->span().subspan(offset, length); }
};

struct Frame {
  // `length` and, for control messages, all fields except `type` are set when the frame is sent.
  FrameHeader header;
  std::variant<std::monostate, Control, FloatSlice> payload;
};

template <typename Message>
Frame control_frame(Message message) {
  return Frame{.header = {.type = FrameType::kControl}, .payload = Control(std::move(message))};
}

}  // namespace drover
