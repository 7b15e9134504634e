#include "job/toml_complaint.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>

namespace drover {
namespace {

Error located(std::string_view name, toml::source_position at, std::string_view what) {
  return invalid_input(fmt::format("{}:{}:{}: {}", name, at.line, at.column, what));
}

}  // namespace

Result<std::string> read_toml_file(const std::string& path, std::string_view kind) {
  std::ifstream file(path, std::ios::binary);
  std::string text(kTomlFileBytesMax + 1, '\0');
  // Opening a folder succeeds, and reading from it fails.
  if (!file || !(file.read(text.data(), static_cast<std::streamsize>(text.size())) || file.eof())) {
    return system_error(
        fmt::format("cannot read the {} '{}': {}", kind, path, std::strerror(errno)));
  }
  text.resize(static_cast<size_t>(file.gcount()));
  if (text.size() > kTomlFileBytesMax) {
    return invalid_input(fmt::format("the {} '{}' is larger than {} bytes: is it a {}?", kind, path,
                                     kTomlFileBytesMax, kind));
  }
  return text;
}

Result<toml::table> parse_toml(std::string_view text, std::string_view name) {
  try {
    return toml::parse(text, name);
  } catch (const toml::parse_error& trouble) {
    return located(name, trouble.source().begin, trouble.description());
  }
}

std::string_view words_for(toml::node_type type) {
  switch (type) {
    case toml::node_type::none:
      return "nothing";
    case toml::node_type::table:
      return "a table";
    case toml::node_type::array:
      return "a list";
    case toml::node_type::string:
      return "text";
    case toml::node_type::integer:
      return "a whole number";
    case toml::node_type::floating_point:
      return "a number with a fraction";
    case toml::node_type::boolean:
      return "true or false";
    case toml::node_type::date:
      return "a date";
    case toml::node_type::time:
      return "a time";
    case toml::node_type::date_time:
      return "a date and time";
  }
  return "something else";
}

std::string source_text(const toml::node& node) {
  std::ostringstream out;
  node.visit([&](const auto& value) { out << value; });
  return out.str();
}

Error first_of(const std::vector<Complaint>& complaints, std::string_view name) {
  // The library sorts a table's keys by name; errors are sorted by their place.
  const auto first =
      std::min_element(complaints.begin(), complaints.end(),
                       [](const Complaint& a, const Complaint& b) { return a.at < b.at; });
  return located(name, first->at, first->what);
}

}  // namespace drover
