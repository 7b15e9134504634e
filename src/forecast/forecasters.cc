#include "forecast/forecasters.h"

#include <utility>

namespace drover {

std::unique_ptr<Forecaster> make_elfving(const ElfvingSettings& settings) {
  return std::make_unique<ElfvingForecaster>(settings);
}

std::unique_ptr<Forecaster> make_elfving_online(const ElfvingOnlineSettings& settings) {
  return std::make_unique<ElfvingForecaster>(settings);
}

std::unique_ptr<Forecaster> make_ecdf(const EcdfSettings& settings) {
  return std::make_unique<EcdfForecaster>(settings);
}

std::unique_ptr<Forecaster> make_ewma(const EwmaSettings& settings) {
  return std::make_unique<EwmaForecaster>(settings);
}

std::unique_ptr<Forecaster> make_bayes(BayesSettings settings) {
  return std::make_unique<BayesForecaster>(std::move(settings));
}

std::unique_ptr<Forecaster> make_published(PublishedSettings settings) {
  return std::make_unique<PublishedForecaster>(std::move(settings));
}

}  // namespace drover
