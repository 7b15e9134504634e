// A MessagePort for tests: all ranks are in one process, and the test controls the delivery.
#pragma once

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/check.h"
#include "net/message_port.h"

namespace drover {

class TestPort;

// The state that all ports share.
struct TestWorld {
  struct Message {
    uint32_t from = 0;
    uint32_t to = 0;
    uint32_t lane = 0;
    std::span<const std::byte> bytes;
    bool received = false;
  };
  // In the order in which they were sent; a send has ended when its message was received.
  std::vector<std::shared_ptr<Message>> messages;
  bool delivers = true;
  uint32_t ranks = 2;
};

class TestPort final : public MessagePort {
 public:
  TestPort(TestWorld& world, uint32_t rank) : world_(world), rank_(rank) {}

  uint32_t rank() const override { return rank_; }
  uint32_t ranks() const override { return world_.ranks; }
  uint32_t new_lane() override { return ++lane_; }

  Result<Ticket> begin_send(std::span<const std::byte> message, MessageAddress to) override {
    if (!trouble.empty()) return Error{ErrorKind::kDisconnected, trouble};
    DROVER_CHECK(reaches(to));
    const auto sent =
        std::make_shared<TestWorld::Message>(TestWorld::Message{rank_, to.rank, to.lane, message});
    world_.messages.push_back(sent);
    sends_[++ticket_] = sent;
    return ticket_;
  }

  Result<Ticket> begin_receive(std::span<std::byte> into, MessageAddress from) override {
    if (!trouble.empty()) return Error{ErrorKind::kDisconnected, trouble};
    DROVER_CHECK(reaches(from));
    receives_[++ticket_] = {into, from};
    return ticket_;
  }

  Result<bool> has_ended(Ticket ticket) override {
    ++looks;
    if (const auto send = sends_.find(ticket); send != sends_.end()) {
      if (!send->second->received) return false;
      sends_.erase(send);
      return true;
    }
    const auto receive = receives_.find(ticket);
    DROVER_CHECK(receive != receives_.end());
    const auto [into, from] = receive->second;
    const auto found = std::find_if(
        world_.messages.begin(), world_.messages.end(), [&, peer = from](const auto& message) {
          return message->from == peer.rank && message->to == rank_ && message->lane == peer.lane;
        });
    if (!world_.delivers || found == world_.messages.end()) return false;
    receives_.erase(receive);
    const auto message = std::move(*found);
    world_.messages.erase(found);
    message->received = true;
    if (message->bytes.size() != into.size()) return invalid_input("of another length");
    std::memcpy(into.data(), message->bytes.data(), into.size());
    return true;
  }

  void cancel_receive(Ticket receive) override { DROVER_CHECK(receives_.erase(receive) == 1); }
  void release_send(Ticket send, Memory memory) override {
    DROVER_CHECK(sends_.erase(send) == 1);
    kept.push_back(std::move(memory));
  }
  void finish() override {}

  size_t under_way() const { return sends_.size() + receives_.size(); }

  std::string trouble;       // if not empty, every operation fails with this message
  std::vector<Memory> kept;  // memory of released sends
  size_t looks = 0;

 private:
  TestWorld& world_;
  const uint32_t rank_;
  std::map<Ticket, std::shared_ptr<TestWorld::Message>> sends_;
  std::map<Ticket, std::pair<std::span<std::byte>, MessageAddress>> receives_;
  Ticket ticket_ = 0;
  uint32_t lane_ = 0;
};

}  // namespace drover
