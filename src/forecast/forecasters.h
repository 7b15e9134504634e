// Makes the forecasters.
#pragma once

#include <memory>

#include "forecast/ecdf.h"
#include "forecast/elfving.h"
#include "forecast/ewma.h"
#include "forecast/forecaster.h"
#include "forecast/learned/bayes.h"
#include "forecast/learned/published.h"

namespace drover {

std::unique_ptr<Forecaster> make_elfving(const ElfvingSettings& settings);
std::unique_ptr<Forecaster> make_elfving_online(const ElfvingOnlineSettings& settings);
std::unique_ptr<Forecaster> make_ecdf(const EcdfSettings& settings);
std::unique_ptr<Forecaster> make_ewma(const EwmaSettings& settings);
std::unique_ptr<Forecaster> make_bayes(BayesSettings settings);
std::unique_ptr<Forecaster> make_published(PublishedSettings settings);

}  // namespace drover
