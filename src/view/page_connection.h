// PageConnection: a connection to the dashboard's server. It reads one request and answers it; then
// it is closed, or stays open for events.
//
// A client that is slow to send its request or to read the answer is disconnected. Not thread-safe.
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "view/request.h"

namespace drover {

struct PageAnswer {
  unsigned status = 200;  // HTTP status
  std::string_view type;  // content type of the body
  std::string body;
  bool events_follow = false;
};

// The HTTP response, including the headers common to all responses.
std::string to_http(const PageAnswer& answer);

class PageConnection : public std::enable_shared_from_this<PageConnection> {
 public:
  struct Callbacks {
    std::function<PageAnswer(const PageRequest&)> answer;
    std::function<void(PageConnection&)> events_begin;  // after an answer with events_follow
    std::function<void(PageConnection&)> closed;        // called once, last
  };
  // `unread_max`: limit of queued bytes that the client has not read.
  PageConnection(boost::asio::ip::tcp::socket socket, size_t unread_max, Callbacks callbacks);

  void start();
  // Queues more text for a connection with events. Closes it if more than unread_max bytes are
  // queued.
  void send(std::shared_ptr<const std::string> text);
  // Closes the connection after all queued text has been sent.
  void finish();
  void close();

  // For the server's use:
  bool streams_events = false;  // the client has requested events
  bool received_all = false;    // the client was sent the complete state of the run

 private:
  void on_request(const boost::beast::error_code& trouble);
  void answer_with(const PageAnswer& answer);
  void write_next();
  void hang_up();
  // Reads and discards input until the client closes the connection.
  void discard();

  boost::beast::tcp_stream stream_;
  const size_t unread_max_;
  Callbacks callbacks_;
  boost::beast::flat_buffer buffer_;
  boost::beast::http::request_parser<boost::beast::http::empty_body> parser_;
  std::deque<std::shared_ptr<const std::string>> queue_;
  size_t queued_bytes_ = 0;
  bool writing_ = false;
  bool finishing_ = false;
  bool head_only_ = false;  // the request wants no body
  bool closed_ = false;
  char discarded_[512] = {};
};

}  // namespace drover
