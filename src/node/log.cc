#include "node/log.h"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

namespace drover {

void set_log_name(const std::string& name) {
  auto logger =
      std::make_shared<spdlog::logger>(name, std::make_shared<spdlog::sinks::stderr_sink_st>());
  // On a terminal, clear the progress line first.
  const std::string clear = ::isatty(STDERR_FILENO) != 0 ? "\r\033[K" : "";
  logger->set_pattern(clear + "drover" + (name.empty() ? "" : " " + name) + ": %v");
  logger->flush_on(spdlog::level::info);
  spdlog::set_default_logger(std::move(logger));
}

}  // namespace drover
