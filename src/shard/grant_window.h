// GrantWindow: how many bytes of gradients may be in flight at once, on networks that lose packets.
//
// Many senders at once overflow the buffers of a shallow switch (incast). A lost packet waits for a
// TCP retransmission timeout, which is longer than the whole push. So the window adapts to observed
// losses, like TCP's congestion window (AIMD): it halves when there are many losses, and grows a
// little after a long time with few. The receiver detects losses as packets out of order. These
// also occur without losses (on loopback with about one block in seventy), so few of them are
// ignored.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace drover {

class GrantWindow {
 public:
  static constexpr size_t kLeastBytes = 64 << 10;
  static constexpr size_t kGrowthBytes = 64 << 10;
  // The window halves if kLossyMax of up to kInterval consecutive blocks had losses.
  static constexpr uint32_t kInterval = 16;
  static constexpr uint32_t kLossyMax = 4;
  // The window grows after this many intervals in a row without halving.
  static constexpr uint32_t kCleanIntervals = 4;

  // The window begins at `most` bytes and is never larger.
  explicit GrantWindow(size_t most) : most_(most), bytes_(most) {}

  size_t bytes() const { return bytes_; }

  // A block has arrived. `lost`: a loss was detected on its way.
  void on_block(bool lost) {
    ++blocks_;
    lossy_ += lost ? 1 : 0;
    if (lossy_ >= kLossyMax) {
      bytes_ = std::min(most_, std::max(kLeastBytes, bytes_ / 2));
      begin_interval();
      clean_ = 0;
    } else if (blocks_ == kInterval) {
      begin_interval();
      if (++clean_ < kCleanIntervals) return;
      bytes_ = std::min(most_, bytes_ + kGrowthBytes);
      clean_ = 0;
    }
  }

 private:
  void begin_interval() { blocks_ = lossy_ = 0; }

  const size_t most_;
  size_t bytes_;
  uint32_t blocks_ = 0;  // of the interval so far
  uint32_t lossy_ = 0;   // of these, with losses
  uint32_t clean_ = 0;   // intervals in a row without halving
};

}  // namespace drover
