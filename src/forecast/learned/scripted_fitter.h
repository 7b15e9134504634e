// ScriptedFitter: for tests, returns a model chosen by the test, two steps after the request.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "forecast/learned/fitting.h"

namespace drover {

struct FitScript {
  std::function<ModelWeights(const FitRequest&)> model;  // the result of a fit
  bool fails = false;
  std::vector<FitRequest> requests;  // in order
  std::vector<Step> asked_at;
};

class ScriptedFitter : public Fitter {
 public:
  static constexpr Step kTakes = 2;
  explicit ScriptedFitter(FitScript& script) : script_(script) {}

  void begin(Step now, FitRequest request) override {
    busy_ = true;
    script_.requests.push_back(std::move(request));
    script_.asked_at.push_back(now);
  }
  bool busy() const override { return busy_; }
  std::optional<Result<FitOutcome>> poll(Step now) override {
    if (!busy_ || now < script_.asked_at.back() + kTakes) return {};
    busy_ = false;
    if (script_.fails) return Result<FitOutcome>(system_error("no libtorch here"));
    return Result<FitOutcome>(FitOutcome{script_.model(script_.requests.back()), {}});
  }

 private:
  FitScript& script_;
  bool busy_ = false;
};

}  // namespace drover
