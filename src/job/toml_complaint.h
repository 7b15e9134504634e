// Errors in TOML files, with their place: for job files and scenarios.
#pragma once

#include <toml++/toml.h>

#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "job/job.h"

namespace drover {

inline constexpr size_t kTomlFileBytesMax = 1 << 20;

struct Complaint {
  toml::source_position at;
  std::string what;
};

// Reads the text of a file; `kind` is its expected kind, for errors: "job file".
Result<std::string> read_toml_file(const std::string& path, std::string_view kind);

// `name` is the file's name in errors.
Result<toml::table> parse_toml(std::string_view text, std::string_view name);

// "a whole number", "a list": for messages about values of the wrong kind.
std::string_view words_for(toml::node_type type);
// The value as TOML text.
std::string source_text(const toml::node& node);

// The complaint nearest to the top of the file: "demo.toml:3:1: unknown key ...".
// REQUIRES: there is one.
Error first_of(const std::vector<Complaint>& complaints, std::string_view name);

// Sets the settings of a table (job/settings.h) in the job, and adds errors to `complaints`.
void read_job_table(const toml::table& table, Job& job, std::vector<Complaint>& complaints);

}  // namespace drover
