// GrantWindow: how many bytes of gradients may be under way at once, where packets may get lost.
//
// Many senders at once overflow the buffer of a shallow switch; what is lost waits for a timeout of
// TCP's, longer than the whole push takes. So the window follows what is seen of losses, as TCP's
// own does for one connection: it halves when they are many, and grows by a little when there have
// been few for long. What a receiver sees are packets out of order, and now and then those come
// where nothing is lost (on loopback with about one block in seventy); one of those is no news.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace drover {

class GrantWindow {
 public:
  static constexpr size_t kLeastBytes = 64 << 10;
  static constexpr size_t kGrowthBytes = 64 << 10;
  // Blocks that are looked at together, and how many of them with losses are too many.
  static constexpr uint32_t kStretch = 16;
  static constexpr uint32_t kTooMany = 4;
  // Stretches in a row without too many losses before the window grows.
  static constexpr uint32_t kCalm = 4;

  // Begins at `most`, and never is larger.
  explicit GrantWindow(size_t most) : most_(most), bytes_(most) {}

  size_t bytes() const { return bytes_; }

  // A block has come; `lost`: and on the way something was seen to be lost.
  void on_block(bool lost) {
    ++blocks_;
    lossy_ += lost ? 1 : 0;
    if (lossy_ >= kTooMany) {
      bytes_ = std::min(most_, std::max(kLeastBytes, bytes_ / 2));
      begin_stretch();
      calm_ = 0;
    } else if (blocks_ == kStretch) {
      begin_stretch();
      if (++calm_ < kCalm) return;
      bytes_ = std::min(most_, bytes_ + kGrowthBytes);
      calm_ = 0;
    }
  }

 private:
  void begin_stretch() { blocks_ = lossy_ = 0; }

  const size_t most_;
  size_t bytes_;
  uint32_t blocks_ = 0;  // of the stretch, so far
  uint32_t lossy_ = 0;   // of these
  uint32_t calm_ = 0;    // stretches in a row
};

}  // namespace drover
