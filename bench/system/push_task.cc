#include "system/push_task.h"

#include <unistd.h>

#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <cstring>
#include <optional>
#include <utility>

#include "net/socket.h"
#include "node/clock.h"
#include "system/far_end.h"
#include "system/processes.h"

namespace drover {
namespace {

class PushTask final : public Task {
 public:
  PushTask(const PushTaskSettings& settings, std::unique_ptr<boost::asio::io_context> loop,
           std::optional<Socket> plain)
      : settings_(settings),
        layout_(push_layout(settings.floats)),
        copied_(settings.floats),
        own_(settings.floats),
        loop_(std::move(loop)),
        plain_(std::move(plain)) {
    fill(own_.span());
  }

  const Layout& layout() const override { return layout_; }

  void initial_parameters(std::span<float> parameters) override {
    std::fill(parameters.begin(), parameters.end(), 0.0F);
  }

  GradientReport gradient(std::span<const float> parameters, const Batch& batch,
                          std::span<float> gradient, GradientListener& listener) override {
    // Fills each buffer once; its content does not change between steps.
    if (filled_.insert(gradient.data()).second) fill(gradient);
    stamp();
    answer();
    while (true) {
      char order = 0;
      if (::read(settings_.orders_fd, &order, 1) != 1) return {};
      if (static_cast<Order>(order) == Order::kPush) break;
      obey(static_cast<Order>(order), parameters);
      answer();
    }
    ++updates_;
    listener.tensor_ready(0);
    return {.finished = true, .samples = batch.count};
  }

  Evaluation evaluate(std::span<const float>) override { return {}; }
  Status save(std::span<const float>, const std::string&) override { return done(); }
  std::vector<std::pair<std::string, std::string>> describe() const override { return {}; }

 private:
  void fill(std::span<float> gradient) const {
    for (size_t i = 0; i < gradient.size(); ++i) gradient[i] = gradient_value(settings_.index, i);
  }

  void stamp() { settings_.line->done_at = clock_now().count(); }
  void answer() { [[maybe_unused]] const ssize_t sent = ::write(settings_.orders_fd, "d", 1); }

  void obey(Order order, std::span<const float> parameters) {
    switch (order) {
      case Order::kPlainPush:
        plain_push();
        break;
      case Order::kCopy:
        std::memcpy(copied_.data(), settings_.shared.data(), copied_.size() * sizeof(float));
        stamp();
        break;
      case Order::kCheck:
        check(parameters);
        break;
      case Order::kCount:
        settings_.line->retransmits = tcp_retransmits();
        break;
      case Order::kPush:
        break;
    }
  }

  void plain_push() {
    boost::system::error_code error;
    for (size_t begin = 0; begin < own_.size() && !error; begin += kBlockFloats) {
      const auto block =
          own_.span().subspan(begin, std::min<size_t>(kBlockFloats, own_.size() - begin));
      const PlainRequest header{.bytes = block.size_bytes(), .count = begin};
      const std::array<boost::asio::const_buffer, 2> parts = {
          boost::asio::buffer(&header, sizeof(header)),
          boost::asio::buffer(block.data(), block.size_bytes())};
      boost::asio::write(*plain_, parts, TransferAll{}, error);
    }
    PlainRequest reply;
    boost::asio::read(*plain_, boost::asio::buffer(&reply, sizeof(reply)), TransferAll{}, error);
    stamp();
  }

  void check(std::span<const float> parameters) {
    uint64_t wrong = 0;
    for (size_t i = 0; i < settings_.floats; ++i) {
      if (parameters[i] != parameter_value(settings_.workers, i, updates_)) ++wrong;
    }
    settings_.line->wrong = wrong;
  }

  const PushTaskSettings settings_;
  const Layout layout_;
  FloatBuffer copied_;
  FloatBuffer own_;  // the same gradient, for plain pushes
  std::set<const float*> filled_;
  uint64_t updates_ = 0;
  std::unique_ptr<boost::asio::io_context> loop_;
  std::optional<Socket> plain_;
};

}  // namespace

float gradient_value(uint32_t worker, size_t index) {
  return static_cast<float>((index * 31 + size_t{worker} * 17) % 61) - 30.0F;
}

float parameter_value(uint32_t workers, size_t index, uint64_t updates) {
  float sum = 0.0F;
  for (uint32_t worker = 0; worker < workers; ++worker) sum += gradient_value(worker, index);
  const float mean = sum * static_cast<float>(1.0 / static_cast<double>(workers));
  float value = 0.0F;
  for (uint64_t i = 0; i < updates; ++i) value = value - mean;
  return value;
}

Layout push_layout(size_t floats) {
  return Layout({TensorSpec{.name = "gradient", .size = floats, .kind = TensorKind::kTrained}});
}

Result<std::unique_ptr<Task>> make_push_task(const PushTaskSettings& settings) {
  auto loop = std::make_unique<boost::asio::io_context>(1);
  std::optional<Socket> plain;
  if (!settings.plain_address.empty()) {
    auto socket = connect_socket(*loop, settings.plain_address, "the benchmark");
    if (!socket) return socket.error();
    plain = std::move(socket).value();
  }
  return std::unique_ptr<Task>(
      std::make_unique<PushTask>(settings, std::move(loop), std::move(plain)));
}

}  // namespace drover
