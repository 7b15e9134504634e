#include "node/connection_limiter.h"

#include <algorithm>

namespace drover {

bool ConnectionLimiter::is_shut_out(const std::string& address, TimePoint now) const {
  const auto found = accounts_.find(address);
  return found != accounts_.end() && now < found->second.shut_until;
}

bool ConnectionLimiter::on_failure(const std::string& address, bool near, TimePoint now) {
  const Limits& limits = near || members_.contains(address) ? kNear : kFar;
  auto found = accounts_.find(address);
  const bool first = found == accounts_.end();
  if (first) {
    make_room(now);
    found = accounts_.emplace(address, Account{.left = limits.failures, .seen = now, .told = now})
                .first;
  }
  Account& account = found->second;
  account.left += limits.per_second * seconds(now - account.seen);
  account.seen = now;
  if (account.left >= limits.failures) {
    account.left = limits.failures;
    account.shut_for = Duration::zero();
  }
  if (account.left >= 1.0) {
    account.left -= 1.0;
  } else {
    account.shut_for =
        std::clamp(account.shut_for * 2, Duration(limits.shut_first), Duration(limits.shut_most));
    account.shut_until = now + account.shut_for;
  }
  if (!first && now - account.told < kTellEvery) return false;
  account.told = now;
  return true;
}

void ConnectionLimiter::make_room(TimePoint now) {
  if (accounts_.size() < kAddressesMax) return;
  const auto least =
      std::min_element(accounts_.begin(), accounts_.end(), [now](const auto& a, const auto& b) {
        const auto guilt = [now](const Account& account) {
          return std::pair(std::max(account.shut_until - now, Duration::zero()), account.seen);
        };
        return guilt(a.second) < guilt(b.second);
      });
  accounts_.erase(least);
}

}  // namespace drover
