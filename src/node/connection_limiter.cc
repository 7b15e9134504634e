#include "node/connection_limiter.h"

#include <algorithm>

namespace drover {

bool ConnectionLimiter::is_blocked(const std::string& address, TimePoint now) const {
  const auto found = accounts_.find(address);
  return found != accounts_.end() && now < found->second.blocked_until;
}

bool ConnectionLimiter::on_failure(const std::string& address, bool near, TimePoint now) {
  const Limits& limits = near || members_.contains(address) ? kTrusted : kRemote;
  auto found = accounts_.find(address);
  const bool first = found == accounts_.end();
  if (first) {
    evict_one_if_full(now);
    const Account account{.left = limits.failures, .updated = now, .reported = now};
    found = accounts_.emplace(address, account).first;
  }
  Account& account = found->second;
  account.left += limits.per_second * seconds(now - account.updated);
  account.updated = now;
  if (account.left >= limits.failures) {
    account.left = limits.failures;
    account.block = Duration::zero();
  }
  if (account.left >= 1.0) {
    account.left -= 1.0;
  } else {
    account.block =
        std::clamp(account.block * 2, Duration(limits.first_block), Duration(limits.longest_block));
    account.blocked_until = now + account.block;
  }
  if (!first && now - account.reported < kReportInterval) return false;
  account.reported = now;
  return true;
}

void ConnectionLimiter::evict_one_if_full(TimePoint now) {
  if (accounts_.size() < kAddressesMax) return;
  const auto least =
      std::min_element(accounts_.begin(), accounts_.end(), [now](const auto& a, const auto& b) {
        const auto rank = [now](const Account& account) {
          return std::pair(std::max(account.blocked_until - now, Duration::zero()),
                           account.updated);
        };
        return rank(a.second) < rank(b.second);
      });
  accounts_.erase(least);
}

}  // namespace drover
