// Result<T>: either a value, or the reason there is none.
//
// The shape follows std::expected, which GCC 12 offers only from C++23, so that one day this file
// can become an alias.
#pragma once

#include <string>
#include <utility>
#include <variant>

#include "core/check.h"

namespace drover {

enum class ErrorKind {
  kInvalidInput,  // the user or a peer gave us something we cannot use
  kDisconnected,  // a peer is gone
  kRefused,       // a peer does not want us
  kNotNow,        // we do not want a peer now; it may come again
  kTimedOut,      // nothing came in time
  kStopped,       // we were asked to stop
  kSystem,        // the machine refused: files, sockets, memory
};

struct Error {
  ErrorKind kind;
  std::string message;  // says what was attempted, on what, why it failed, and what to try
  int os_error = 0;     // errno, where the operating system's reason is known
};

template <typename T>
class [[nodiscard]] Result {
 public:
  // Implicit on purpose: `return value;` and `return Error{...};` both read well.
  Result(T value) : state_(std::move(value)) {}      // NOLINT(google-explicit-constructor)
  Result(Error error) : state_(std::move(error)) {}  // NOLINT(google-explicit-constructor)

  bool ok() const { return std::holds_alternative<T>(state_); }
  explicit operator bool() const { return ok(); }

  const T& value() const& {
    DROVER_CHECK(ok());
    return *std::get_if<T>(&state_);
  }
  T& value() & {
    DROVER_CHECK(ok());
    return *std::get_if<T>(&state_);
  }
  T&& value() && {
    DROVER_CHECK(ok());
    return std::move(*std::get_if<T>(&state_));
  }
  const Error& error() const {
    DROVER_CHECK(!ok());
    return *std::get_if<Error>(&state_);
  }

 private:
  std::variant<T, Error> state_;
};

// The result of something done for its effect: `return done();` or `return Error{...};`.
struct Done {};
using Status = Result<Done>;
inline Status done() { return Done{}; }

inline Error invalid_input(std::string message) {
  return Error{ErrorKind::kInvalidInput, std::move(message)};
}
inline Error system_error(std::string message, int os_error = 0) {
  return Error{ErrorKind::kSystem, std::move(message), os_error};
}

}  // namespace drover
