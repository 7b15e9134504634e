// Frame: what a state machine wants sent. A header, and a control message or a slice of floats
// behind it.
#pragma once

#include <cstddef>
#include <utility>
#include <variant>

#include "core/float_buffer.h"
#include "wire/control.h"
#include "wire/header.h"

namespace drover {

// Floats that are sent from where they lie; sharing the buffer keeps them there until they are
// gone.
struct FloatSlice {
  ConstBuffer buffer;
  size_t offset = 0;
  size_t length = 0;

  std::span<const float> span() const { return buffer->span().subspan(offset, length); }
};

struct Frame {
  FrameHeader
      header;  // `length` and, for control messages, everything but `type` is filled in when sent
  std::variant<std::monostate, Control, FloatSlice> payload;
};

template <typename Message>
Frame control_frame(Message message) {
  return Frame{.header = {.type = FrameType::kControl}, .payload = Control(std::move(message))};
}

}  // namespace drover
