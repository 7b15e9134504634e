#include "view/page_connection.h"

#include <boost/asio/buffer.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/write.hpp>
#include <sstream>
#include <utility>

#include "view/run_json.h"

namespace drover {
namespace {

namespace beast = boost::beast;
namespace http = boost::beast::http;

constexpr uint32_t kHeaderBytesMax = 8 * 1024;
constexpr std::chrono::seconds kRequestTimeout{10};
constexpr std::chrono::seconds kWriteTimeout{20};
constexpr std::chrono::seconds kCloseTimeout{2};

std::string_view view_of(beast::string_view text) { return {text.data(), text.size()}; }

}  // namespace

std::string to_http(const PageAnswer& answer) {
  http::response<http::empty_body> head(static_cast<http::status>(answer.status), 11);
  head.set(http::field::content_type, beast::string_view(answer.type.data(), answer.type.size()));
  head.set(http::field::cache_control, "no-store");
  head.set(http::field::connection, "close");
  head.set("X-Content-Type-Options", "nosniff");
  head.set("Referrer-Policy", "no-referrer");  // the URL contains the token
  head.set("X-Frame-Options", "DENY");
  head.set("Content-Security-Policy",
           "default-src 'self' 'unsafe-inline' data:; frame-ancestors 'none'; base-uri 'none'; "
           "form-action 'none'");
  if (answer.status == 405) head.set(http::field::allow, "GET, HEAD");
  if (answer.status == 401) head.set(http::field::www_authenticate, "Bearer");
  if (!answer.events_follow)
    head.set(http::field::content_length, std::to_string(answer.body.size()));
  std::ostringstream text;
  text << head.base();
  return text.str() + answer.body;
}

PageConnection::PageConnection(boost::asio::ip::tcp::socket socket, size_t unread_max,
                               Callbacks callbacks)
    : stream_(std::move(socket)), unread_max_(unread_max), callbacks_(std::move(callbacks)) {
  parser_.header_limit(kHeaderBytesMax);
}

void PageConnection::start() {
  stream_.expires_after(kRequestTimeout);
  http::async_read_header(stream_, buffer_, parser_,
                          [self = shared_from_this()](beast::error_code trouble, size_t) {
                            self->on_request(trouble);
                          });
}

void PageConnection::on_request(const beast::error_code& trouble) {
  if (closed_) return;
  if (trouble == http::error::header_limit || trouble == http::error::buffer_overflow) {
    answer_with({431, "application/json", error_json("the request is too long"), false});
    return;
  }
  if (trouble && trouble.category() == http::make_error_code(http::error::bad_method).category() &&
      trouble != http::error::end_of_stream && trouble != http::error::partial_message) {
    answer_with({400, "application/json",
                 error_json("malformed HTTP request: " + trouble.message()), false});
    return;
  }
  if (trouble) {  // the client disconnected or timed out
    close();
    return;
  }
  const auto& message = parser_.get();
  // A HEAD request is answered as GET would be, without the body.
  head_only_ = message.method() == http::verb::head;
  answer_with(callbacks_.answer({.is_get = head_only_ || message.method() == http::verb::get,
                                 .target = view_of(message.target()),
                                 .host = view_of(message[http::field::host]),
                                 .authorization = view_of(message[http::field::authorization])}));
}

void PageConnection::answer_with(const PageAnswer& answer) {
  finishing_ = head_only_ || !answer.events_follow;
  std::string text = to_http(answer);
  if (head_only_) text.resize(text.size() - answer.body.size());
  send(std::make_shared<const std::string>(std::move(text)));
  if (finishing_ || closed_) return;
  streams_events = true;
  stream_.expires_never();  // for reading: a client that receives events sends nothing
  discard();
  callbacks_.events_begin(*this);
}

void PageConnection::send(std::shared_ptr<const std::string> text) {
  if (closed_) return;
  queued_bytes_ += text->size();
  if (queued_bytes_ > unread_max_) {
    close();
    return;
  }
  queue_.push_back(std::move(text));
  if (!writing_) write_next();
}

void PageConnection::write_next() {
  writing_ = true;
  stream_.expires_after(kWriteTimeout);
  boost::asio::async_write(stream_, boost::asio::buffer(*queue_.front()),
                           [self = shared_from_this()](beast::error_code trouble, size_t) {
                             self->writing_ = false;
                             if (trouble) self->close();
                             if (self->closed_) return;
                             self->queued_bytes_ -= self->queue_.front()->size();
                             self->queue_.pop_front();
                             if (!self->queue_.empty()) {
                               self->write_next();
                             } else if (self->finishing_) {
                               self->streams_events ? self->close() : self->hang_up();
                             }
                           });
}

void PageConnection::finish() {
  finishing_ = true;
  if (!writing_) close();
}

// Does not close at once: if the client still sends data, closing would reset the connection and
// could discard the answer.
void PageConnection::hang_up() {
  beast::error_code ignored;
  stream_.socket().shutdown(boost::asio::ip::tcp::socket::shutdown_send, ignored);
  stream_.expires_after(kCloseTimeout);
  discard();
}

void PageConnection::discard() {
  stream_.async_read_some(boost::asio::buffer(discarded_),
                          [self = shared_from_this()](beast::error_code trouble, size_t) {
                            if (trouble) self->close();
                            if (!self->closed_) self->discard();
                          });
}

void PageConnection::close() {
  if (std::exchange(closed_, true)) return;
  beast::error_code ignored;
  stream_.socket().close(ignored);
  callbacks_.closed(*this);
}

}  // namespace drover
