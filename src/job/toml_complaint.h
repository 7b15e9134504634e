// What is wrong in a file that people wrote in TOML, and where: shared by job files and scenarios.
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

// The text of a file; `kind` is what it should be: "job file".
Result<std::string> read_toml_file(const std::string& path, std::string_view kind);

// `name` stands for the file in errors.
Result<toml::table> parse_toml(std::string_view text, std::string_view name);

// "a whole number", "a list": for messages about values of the wrong kind.
std::string_view words_for(toml::node_type type);
// The value as it would be written.
std::string source_text(const toml::node& node);

// The complaint nearest to the top of the file: "demo.toml:3:1: unknown key ...".
// REQUIRES: there is one.
Error first_of(const std::vector<Complaint>& complaints, std::string_view name);

// Takes over what a table of job settings says (job/settings.h), and notes what is wrong with it.
void read_job_table(const toml::table& table, Job& job, std::vector<Complaint>& complaints);

}  // namespace drover
