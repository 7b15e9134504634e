// Channel: frames over a connection. Checks what comes in, queues what goes out.
//
// Lives on one event loop; every call and every callback happens on that loop's thread.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/ids.h"
#include "core/result.h"
#include "net/connection.h"
#include "wire/frame.h"

namespace drover {

class Channel : public std::enable_shared_from_this<Channel> {
 public:
  // An error returned by one of these means that the peer breaks the protocol: it is told why, and
  // the channel is closed.
  struct Callbacks {
    // Where the payload of a frame that carries floats goes; it must have exactly header.length
    // bytes.
    std::function<Result<std::span<std::byte>>(const FrameHeader&)> payload_for;
    // A whole frame that is not a control message.
    std::function<Status(const FrameHeader&)> on_frame;
    std::function<Status(Control)> on_control;
    // The connection is gone; nothing is called after this.
    std::function<void(const Error&)> on_closed;
    // Floats handed to send() are no longer read from.
    std::function<void(const ConstBuffer&)> on_floats_sent;
  };

  // Frames of another run are refused.
  Channel(Socket socket, RunId run);

  void start(Callbacks callbacks);
  // For whoever takes the channel over after its greeting.
  void replace_callbacks(Callbacks callbacks);

  void send(Frame frame);

  // Tells the peer why it is not wanted, then closes. on_closed is not called.
  void refuse(const std::string& reason);
  // Closes at once; on_closed is not called.
  void close();
  // Closes when everything queued has been written; on_closed is not called.
  void close_when_sent();
  bool idle() const { return queue_.empty() && !writing_; }

 private:
  struct Queued {
    HeaderBytes header;
    std::string control;  // encoded
    FloatSlice floats;    // or these
  };

  void read_header();
  void read_payload(const FrameHeader& header);
  void deliver(const FrameHeader& header);
  void write_queued();
  // Ends the channel because of the peer, or of the connection to it.
  void fail(const Error& why);

  std::shared_ptr<Connection> connection_;
  const RunId run_;
  std::shared_ptr<Callbacks> callbacks_;  // null once closed
  HeaderBytes header_bytes_{};
  std::vector<std::byte> control_bytes_;
  std::deque<Queued> queue_;
  std::vector<Queued> being_written_;
  bool writing_ = false;
  bool close_when_sent_ = false;
};

}  // namespace drover
