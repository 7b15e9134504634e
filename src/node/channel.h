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
  // An error returned by one of these means that the peer breaks the protocol: the channel sends it
  // the reason and closes.
  struct Callbacks {
    // Where to write the payload of a frame with floats. ENSURES: exactly header.length bytes.
    std::function<Result<std::span<std::byte>>(const FrameHeader&)> payload_for;
    // A whole frame that is not a control message.
    std::function<Status(const FrameHeader&)> on_frame;
    std::function<Status(Control)> on_control;
    // The connection has ended. No callback is called after this one.
    std::function<void(const Error&)> on_closed;
    // Floats that were passed to send() are no longer read.
    std::function<void(const ConstBuffer&)> on_floats_sent;
  };

  // Frames of another run are refused. With `tls`, everything is encrypted.
  Channel(Socket socket, RunId run, std::unique_ptr<TlsSession> tls = nullptr);

  void start(Callbacks callbacks);
  // For the channel's owner after the handshake.
  void replace_callbacks(Callbacks callbacks);

  // From here on floats travel as messages to and from `peer`. Their headers, and all other frames,
  // travel on the connection as before. close() also drops messages under way. REQUIRES: both ends
  // call this before either sends floats.
  void carry_floats_by(std::shared_ptr<MessageCourier> courier, MessageAddress peer);

  // Control messages of more bytes are refused before memory is allocated for them.
  void limit_control(uint32_t bytes) { control_bytes_max_ = bytes; }

  // Queues a frame, which is written when the caller has returned to the loop, with all others that
  // are queued by then. Parameters are queued in the order of their blocks. If the peer does not
  // read and the queue grows too long, the channel closes.
  // A duplicate of `file` (-1: none) is sent with the frame, on Unix sockets only.
  void send(Frame frame, int file = -1);
  // Queues a frame that is not urgent: it is written with the next one.
  void send_with_next(Frame frame);
  // As send(), in place of queued parameters of the same block: a peer that reads slowly does not
  // receive outdated versions.
  void send_latest(Frame frame);
  // The file that came with the control message that is being delivered, or with one right behind
  // it, if there is one.
  Descriptor take_file() { return connection_->take_file(); }

  uint32_t packets_out_of_order() { return connection_->packets_out_of_order(); }

  // Sends the peer the reason, then closes. on_closed is not called.
  void refuse(const Error& why);
  // Writes as much of the queue as the kernel accepts, and closes; on_closed is not called.
  void close();
  // Closes when everything queued has been written; on_closed is not called.
  void close_when_sent();
  // See Connection.
  bool is_local() const { return connection_->is_local(); }
  // The peer has refused this connection; on_closed was given its reason.
  bool was_refused() const { return was_refused_; }
  bool idle() const { return queue_.empty() && !writing_ && messages_under_way_ == 0; }

 private:
  struct Queued {
    FrameHeader header;
    HeaderBytes encoded;
    std::string control;           // the payload: an encoded control message
    FloatSlice floats;             // or floats
    std::vector<uint16_t> halves;  // `floats` as 16-bit numbers, if they are sent so
    int file = -1;
  };
  // Floats that the courier is sending.
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
  // Ends the channel because of a fault of the peer or of the connection.
  void fail(const Error& why);

  std::shared_ptr<Connection> connection_;
  Heartbeat heartbeat_;
  boost::asio::steady_timer next_beat_;
  uint64_t received_ = 0;  // bytes, at the last beat
  const RunId run_;
  std::shared_ptr<Callbacks> callbacks_;  // null once closed
  bool was_refused_ = false;
  enum class Reading : uint8_t { kHeader, kPayload };
  Reading reading_ = Reading::kHeader;
  HeaderBytes header_bytes_{};
  FrameHeader header_;  // of the frame whose payload is being read
  std::vector<std::byte> control_bytes_;
  uint32_t control_bytes_max_ = kControlBytesMax;
  std::deque<Queued> queue_;
  size_t queued_bytes_ = 0;  // control messages and headers in queue_
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
