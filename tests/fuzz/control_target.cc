// Control messages: an accepted message is encoded and decoded as the same message.
#include "fuzz/promise.h"
#include "fuzz/targets.h"
#include "wire/control.h"

namespace drover::fuzz {

void control(Bytes input) {
  const auto read = decode_control(input);
  if (!read) {
    promise(!read.error().message.empty(), "a refusal says why");
    return;
  }
  const std::string written = encode_control(read.value());
  const auto again = decode_control(std::as_bytes(std::span(written)));
  promise(again.ok(), "what was taken is taken again");
  promise(again.value().index() == read.value().index(), "a message stays of its kind");
  // Compared as bytes: NaN is not equal to itself.
  promise(encode_control(again.value()) == written, "a message stays what it is");
}

}  // namespace drover::fuzz
