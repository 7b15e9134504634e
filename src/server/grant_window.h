// GrantWindow: how many bytes of gradients may be under way at once, where packets may get lost.
//
// Many senders at once overflow the buffer of a shallow switch; what is lost waits for a timeout of
// TCP's, longer than the whole push takes. So the window follows what is seen of losses, as TCP's
// own does for one connection: a window's worth of bytes with a loss in it halves it, many clean
// ones in a row let it grow again by a little.
#pragma once

#include <algorithm>
#include <cstddef>

namespace drover {

class GrantWindow {
 public:
  static constexpr size_t kLeastBytes = 64 << 10;
  static constexpr size_t kGrowthBytes = 64 << 10;
  // Windows' worth of bytes without a loss before it grows.
  static constexpr size_t kCleanWindows = 16;

  // Begins at `most`, and never is larger.
  explicit GrantWindow(size_t most) : most_(most), bytes_(most) {}

  size_t bytes() const { return bytes_; }

  // So many bytes have come; `lost`: and on the way something was seen to be lost.
  void on_received(size_t bytes, bool lost) {
    since_cut_ += bytes;
    clean_ = lost ? 0 : clean_ + bytes;
    if (lost && since_cut_ >= bytes_) {
      bytes_ = std::min(most_, std::max(kLeastBytes, bytes_ / 2));
      since_cut_ = 0;
    } else if (clean_ >= kCleanWindows * bytes_) {
      bytes_ = std::min(most_, bytes_ + kGrowthBytes);
      clean_ = 0;
    }
  }

 private:
  const size_t most_;
  size_t bytes_;
  size_t since_cut_ = 0;  // bytes received
  size_t clean_ = 0;      // bytes received since the last loss or growth
};

}  // namespace drover
