// Result<T>: a value or an Error.
//
// The interface follows std::expected, which needs C++23.
#pragma once

#include <string>
#include <utility>
#include <variant>

#include "core/check.h"

namespace drover {

enum class ErrorKind {
  kInvalidInput,  // invalid input from the user or a peer
  kDisconnected,  // the connection to a peer ended
  kRefused,       // a peer refused this process
  kNotNow,        // this process refuses a peer for now; the peer may retry
  kTimedOut,      // a timeout expired
  kStopped,       // this process was asked to stop
  kSystem,        // a system call failed: files, sockets, memory
};

struct Error {
  ErrorKind kind;
  std::string message;  // what failed, on what, why, and what to do
  int os_error = 0;     // errno; 0: unknown
};

template <typename T>
class [[nodiscard]] Result {
 public:
  // Implicit, so that functions can `return value;` and `return Error{...};`.
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

// The result of an operation without a value: `return done();` or `return Error{...};`.
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
