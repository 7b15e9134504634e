// Channel: frames over a connection. Checks what comes in, queues what goes out.
//
// Lives on one event loop; every call and every callback happens on that loop's thread.
#pragma once

#include <boost/asio/steady_timer.hpp>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/ids.h"
#include "core/result.h"
#include "net/connection.h"
#include "net/message_courier.h"
#include "node/heartbeat.h"
#include "wire/frame.h"
#include "wire/limits.h"

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

  // Frames of another run are refused. With `tls`, everything is encrypted.
  Channel(Socket socket, RunId run, std::unique_ptr<TlsSession> tls = nullptr);

  void start(Callbacks callbacks);
  // For whoever takes the channel over after its greeting.
  void replace_callbacks(Callbacks callbacks);

  // From here on floats, in both directions, travel as messages of their own to and from `peer`;
  // their headers, and all else, travel as before. Both ends must do this before either sends
  // floats. A lane that closes takes its messages along.
  void carry_floats_by(std::shared_ptr<MessageCourier> courier, MessageAddress peer);

  // Control messages of more bytes are refused before anything is allocated for them.
  void limit_control(uint32_t bytes) { control_bytes_max_ = bytes; }

  // Goes out when the caller has returned to the loop, with everything else that is sent until
  // then. Parameters wait in the order of their blocks. A peer that does not read is given up
  // before it fills our memory.
  // A copy of `file`, if there is one, goes with the frame (Unix sockets only).
  void send(Frame frame, int file = -1);
  // Goes out with the next frame that is sent: nobody waits for it.
  void send_with_next(Frame frame);
  // As send(); parameters of the same block that have not begun to move are forgotten: a peer that
  // reads slowly is not sent what is already old.
  void send_latest(Frame frame);
  // The file that came with the control message that is being delivered, if one did (or with one
  // that is right behind it).
  Descriptor take_file() { return connection_->take_file(); }

  uint32_t packets_out_of_order() { return connection_->packets_out_of_order(); }

  // Tells the peer why it is not wanted, then closes. on_closed is not called.
  void refuse(const Error& why);
  // Closes at once, with what the kernel takes of what is queued; on_closed is not called.
  void close();
  // Closes when everything queued has been written; on_closed is not called.
  void close_when_sent();
  // See Connection.
  bool is_local() const { return connection_->is_local(); }
  // The peer has said that it does not want this connection; on_closed has its reason.
  bool was_refused() const { return was_refused_; }
  bool idle() const { return queue_.empty() && !writing_ && messages_under_way_ == 0; }

 private:
  struct Queued {
    FrameHeader header;
    HeaderBytes encoded;
    std::string control;           // encoded
    FloatSlice floats;             // or these
    std::vector<uint16_t> halves;  // in place of them, if they travel so
    int file = -1;
  };
  // Floats that travel by themselves, and cannot be taken back.
  struct Message {
    FloatSlice floats;
    std::vector<uint16_t> halves;
  };

  void read_frames();
  bool read_header();
  bool on_header();
  bool read_payload();
  void on_read(const Status& status);
  bool deliver();
  bool put_in_queue(Frame frame, int file);
  void enqueue(Queued queued);
  void forget_older(const FrameHeader& header);
  void give_up();
  void plan_write();
  void write_queued();
  bool write_some();
  void send_message(Queued& queued, std::span<const std::byte> bytes);
  void on_message_sent(Message& message, const Status& status);
  void on_written();
  void beat();
  // Ends the channel because of the peer, or of the connection to it.
  void fail(const Error& why);

  std::shared_ptr<Connection> connection_;
  Heartbeat heartbeat_;
  boost::asio::steady_timer next_beat_;
  uint64_t received_ = 0;  // bytes until the last beat
  const RunId run_;
  std::shared_ptr<Callbacks> callbacks_;  // null once closed
  bool was_refused_ = false;
  enum class Reading : uint8_t { kHeader, kPayload };
  Reading reading_ = Reading::kHeader;
  HeaderBytes header_bytes_{};
  FrameHeader header_;  // of the frame whose payload is read
  std::vector<std::byte> control_bytes_;
  uint32_t control_bytes_max_ = kControlBytesMax;
  std::deque<Queued> queue_;
  size_t queued_bytes_ = 0;  // of control messages and headers in it
  std::vector<Queued> being_written_;
  std::vector<std::vector<uint16_t>> spare_halves_;
  std::shared_ptr<MessageCourier> courier_;  // null: floats travel on the connection
  MessageAddress courier_peer_;
  size_t messages_under_way_ = 0;
  bool writing_ = false;
  bool write_planned_ = false;
  bool gave_up_ = false;
  bool close_when_sent_ = false;
};

}  // namespace drover
