#include <charconv>

#include "launch/cluster_placement.h"
#include "wire/limits.h"

namespace drover {
namespace {

bool read_number(std::string_view text, uint32_t& number) {
  const char* const end = text.data() + text.size();
  const auto [stop, trouble] = std::from_chars(text.data(), end, number);
  return trouble == std::errc{} && stop == end && !text.empty();
}

Status expand_into(const std::string& prefix, std::string_view item,
                   std::vector<std::string>& hosts);

// One "01-04" or "7" between brackets.
Status expand_range(const std::string& prefix, std::string_view range, std::string_view rest,
                    std::vector<std::string>& hosts) {
  const size_t dash = range.find('-');
  const std::string_view low = range.substr(0, dash);
  const std::string_view high = dash == std::string_view::npos ? low : range.substr(dash + 1);
  uint32_t first = 0;
  uint32_t last = 0;
  if (!read_number(low, first) || !read_number(high, last) || first > last ||
      last - first >= kWorkersMax)
    return invalid_input("the list of nodes has the invalid range '" + std::string(range) + "'");
  for (uint32_t number = first; number <= last; ++number) {
    std::string digits = std::to_string(number);
    if (digits.size() < low.size()) digits.insert(0, low.size() - digits.size(), '0');
    if (const Status status = expand_into(prefix + digits, rest, hosts); !status) return status;
  }
  return done();
}

Status expand_into(const std::string& prefix, std::string_view item,
                   std::vector<std::string>& hosts) {
  const size_t open = item.find('[');
  if (open == std::string_view::npos) {
    if (prefix.empty() && item.empty()) return invalid_input("the list of nodes has an empty name");
    if (hosts.size() >= kWorkersMax)
      return invalid_input("the list of nodes has more than " + std::to_string(kWorkersMax) +
                           " names");
    hosts.push_back(prefix + std::string(item));
    return done();
  }
  const size_t close = item.find(']', open);
  if (close == std::string_view::npos)
    return invalid_input("the list of nodes has a bracket that is not closed");
  const std::string before = prefix + std::string(item.substr(0, open));
  std::string_view ranges = item.substr(open + 1, close - open - 1);
  while (true) {
    const size_t comma = ranges.find(',');
    const Status status =
        expand_range(before, ranges.substr(0, comma), item.substr(close + 1), hosts);
    if (!status || comma == std::string_view::npos) return status;
    ranges.remove_prefix(comma + 1);
  }
}

}  // namespace

Result<std::vector<std::string>> expand_hosts(std::string_view list) {
  std::vector<std::string> hosts;
  size_t begin = 0;
  int depth = 0;
  for (size_t i = 0; i <= list.size(); ++i) {
    if (i < list.size() && list[i] == '[') ++depth;
    if (i < list.size() && list[i] == ']') --depth;
    if (i < list.size() && (list[i] != ',' || depth > 0)) continue;
    const Status status = expand_into("", list.substr(begin, i - begin), hosts);
    if (!status) return invalid_input(status.error().message + ": '" + std::string(list) + "'");
    begin = i + 1;
  }
  return hosts;
}

}  // namespace drover
