#include "store/trace_csv.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <fstream>
#include <limits>
#include <memory>
#include <optional>
#include <unordered_map>

namespace drover {
namespace {

constexpr std::streamsize kLineBytesMax = std::streamsize{32} << 20;  // kTraceWorkersMax numbers
constexpr size_t kShownBytes = 40;                                    // of a cell, in a message

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  if (text.size() >= 2 && text.front() == '"' && text.back() == '"') {
    text.remove_prefix(1);
    text.remove_suffix(1);
  }
  return text;
}

std::string shown(std::string_view cell) {
  return std::string(cell.substr(0, kShownBytes)) + (cell.size() > kShownBytes ? "..." : "");
}

bool is_word(std::string_view text, std::string_view lower_case) {
  return std::equal(
      text.begin(), text.end(), lower_case.begin(), lower_case.end(),
      [](char a, char b) { return std::tolower(static_cast<unsigned char>(a)) == b; });
}

// All of `text` as a number. "inf" is a number, which is refused later; "nan" means not recorded.
std::optional<double> number_in(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  double value = 0.0;
  const auto [stop, trouble] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (stop != text.data() + text.size() || trouble == std::errc::invalid_argument)
    return std::nullopt;
  if (trouble == std::errc::result_out_of_range) return std::numeric_limits<double>::infinity();
  return value;
}

// Reads a file line by line.
class Lines {
 public:
  explicit Lines(const std::string& path)
      : file_(path, std::ios::binary),
        text_(std::make_unique_for_overwrite<char[]>(kLineBytesMax)) {}

  // False at the end of the file, and if trouble() is not empty.
  bool next() {
    file_.getline(text_.get(), kLineBytesMax);
    const auto read = file_.gcount();
    const bool too_long = file_.fail() && !file_.eof();
    if (read == 0 && !file_.bad() && !too_long) return false;
    ++number_;
    if (file_.bad()) {
      trouble_ = "the file cannot be read any further; check the disk";
      return false;
    }
    if (too_long) {
      trouble_ =
          fmt::format("the line is longer than {} MB; is this a trace?", kLineBytesMax >> 20);
      return false;
    }
    // The count includes the newline, except in a last line that has none.
    line_ = std::string_view(text_.get(), static_cast<size_t>(file_.eof() ? read : read - 1));
    if (line_.ends_with('\r')) line_.remove_suffix(1);
    if (number_ == 1 && line_.starts_with("\xef\xbb\xbf")) line_.remove_prefix(3);
    return true;
  }
  std::string_view line() const { return line_; }
  uint64_t number() const { return number_; }  // from 1
  const std::string& trouble() const { return trouble_; }

 private:
  std::ifstream file_;
  std::unique_ptr<char[]> text_;
  std::string_view line_;
  uint64_t number_ = 0;
  std::string trouble_;
};

// Calls `each(cell, index)` until it returns false. Returns the number of cells.
template <typename Each>
size_t for_cells(std::string_view line, Each&& each) {
  size_t index = 0;
  while (true) {
    const size_t comma = line.find(',');
    if (!each(trimmed(line.substr(0, comma)), index)) return index + 1;
    ++index;
    if (comma == std::string_view::npos) return index;
    line.remove_prefix(comma + 1);
  }
}

class CsvReader {
 public:
  explicit CsvReader(const std::string& path) : lines_(path) { trace_.path = path; }

  Result<Trace> read() {
    Status status = read_header();
    if (status) status = read_rows();
    if (!status) return status.error();
    return std::move(trace_);
  }

 private:
  Error wrong(const std::string& what) const {
    return trace_trouble(trace_.path, fmt::format("line {}", lines_.number()), what);
  }

  Status read_header() {
    if (!lines_.next()) {
      return wrong(lines_.trouble().empty() ? "there is no header" : lines_.trouble());
    }
    const std::string_view first = trimmed(lines_.line().substr(0, lines_.line().find(',')));
    if (!is_word(first, "step")) {
      return wrong(fmt::format(
          "the header must begin with 'step', then name the workers: step,w0,w1,...; it begins "
          "with '{}'{}",
          shown(first),
          lines_.line().find_first_of(";\t") == std::string_view::npos
              ? ""
              : ". Are the columns separated by commas?"));
    }
    std::unordered_map<std::string, size_t> columns;
    std::optional<Error> trouble;
    for_cells(lines_.line(), [&](std::string_view cell, size_t index) {
      if (index == 0) return true;
      std::string name(cell);
      const auto [known, fresh] = columns.emplace(name, index);
      if (cell.empty()) {
        trouble = wrong(fmt::format("column {} has no name", index + 1));
      } else if (!fresh) {
        trouble =
            wrong(fmt::format("columns {} and {} are both called '{}'; every worker needs a "
                              "name of its own",
                              known->second + 1, index + 1, shown(cell)));
      } else if (index > kTraceWorkersMax) {
        trouble = wrong(fmt::format("there are more than {} workers", kTraceWorkersMax));
      }
      trace_.workers.push_back(std::move(name));
      return !trouble.has_value();
    });
    if (trouble) return *trouble;
    if (trace_.workers.empty()) return wrong("the header names no worker: step,w0,w1,...");
    if (trace_.workers.size() == 1)
      return wrong(
          "there is only one worker, so a policy has nothing to decide; a trace needs at least "
          "two");
    return done();
  }

  Status read_rows() {
    std::optional<uint64_t> blank;  // blank lines may only be the last ones
    while (lines_.next()) {
      if (trimmed(lines_.line()).empty()) {
        if (!blank) blank = lines_.number();
        continue;
      }
      if (blank) {
        return trace_trouble(trace_.path, fmt::format("line {}", *blank),
                             "the line is empty; take it out");
      }
      if (Status status = read_row(); !status) return status;
    }
    if (!lines_.trouble().empty()) return wrong(lines_.trouble());
    if (trace_.times.empty()) {
      return trace_trouble(trace_.path, "", "it has a header but no steps");
    }
    return check_nothing_is_empty(trace_, 2);
  }

  Status read_row() {
    std::optional<Error> trouble;
    const size_t begin = trace_.times.size();
    const size_t cells = for_cells(lines_.line(), [&](std::string_view cell, size_t index) {
      if (index > trace_.workers.size()) return true;  // counted, and reported below
      const std::string what = add_cell(cell, index);
      if (what.empty()) return true;
      const std::string column = index == 0 ? "step" : trace_.workers[index - 1];
      trouble = wrong(fmt::format("in column '{}', '{}' {}", column, shown(cell), what));
      return false;
    });
    if (trouble) return *trouble;
    if (cells != trace_.workers.size() + 1) {
      return wrong(
          fmt::format("there are {} values, but the header has {} columns; a run-time "
                      "that was not recorded is left blank between its commas",
                      cells, trace_.workers.size() + 1));
    }
    DROVER_CHECK(trace_.times.size() == begin + trace_.workers.size());
    return done();
  }

  // The error of a cell; "" if it is valid.
  std::string add_cell(std::string_view cell, size_t index) {
    const bool missing = cell.empty() || is_word(cell, "nan");
    const std::optional<double> number = missing ? std::nan("") : number_in(cell);
    if (!number && index > 0) return "is not a number; leave it blank if it was not recorded";
    if (!number) return "is not a number";
    if (index == 0) return missing ? "is not the number of a step" : "";
    trace_.times.push_back(*number);
    return missing ? "" : time_trouble(*number);
  }

  Lines lines_;
  Trace trace_;
};

}  // namespace

Result<Trace> read_csv_trace(const std::string& path) { return CsvReader(path).read(); }

}  // namespace drover
