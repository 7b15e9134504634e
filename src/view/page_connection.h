// PageConnection: one connection to the page's server: reads one request, is answered, and is
// closed or goes on with events.
//
// Whoever is slow to send a request or to take what it is sent is dropped. One thread.
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
  unsigned status = 200;  // of HTTP
  std::string_view type;  // of the body
  std::string body;
  bool events_follow = false;
};

// The whole answer, with the headers that every one has.
std::string to_http(const PageAnswer& answer);

class PageConnection : public std::enable_shared_from_this<PageConnection> {
 public:
  struct Callbacks {
    std::function<PageAnswer(const PageRequest&)> answer;
    std::function<void(PageConnection&)> events_begin;  // after such an answer
    std::function<void(PageConnection&)> closed;        // the last that is heard of it
  };
  // `unread_max`: bytes that may wait for a reader.
  PageConnection(boost::asio::ip::tcp::socket socket, size_t unread_max, Callbacks callbacks);

  void start();
  // More text for a connection with events. More than unread_max not taken yet: it is dropped.
  void send(std::shared_ptr<const std::string> text);
  // Closes it when all that was sent has been taken.
  void finish();
  void close();

  // For the server's use: events have begun, and everything was told once.
  bool wants_events = false;
  bool was_told_all = false;

 private:
  void on_request(const boost::beast::error_code& trouble);
  void answer_with(const PageAnswer& answer);
  void write_next();
  void hang_up();
  // Reads until the other side leaves.
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
  bool closed_ = false;
  char discarded_[512] = {};
};

}  // namespace drover
