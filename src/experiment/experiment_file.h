// Experiment files: a grid of variants, places and seeds, and the target to reach, as TOML.
//
// docs/experiments.md lists the keys. Errors name file, line, column and key, and for an unknown
// key the nearest known one.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "core/target.h"
#include "job/given_flags.h"

namespace drover {

inline constexpr size_t kSeedsMax = 10'000;

// An environment of cells: a simulated cluster, or real processes on this machine.
struct Place {
  std::string name;
  bool real = false;
  std::string file;                 // scenario or job file, as written in the experiment file
  std::string path;                 // the same, relative to the folder of the experiment file
  std::vector<std::string> beside;  // words of a command to run beside each real cell
  GivenFlags set;
};

// Settings to compare with those of other variants.
struct Variant {
  std::string name;
  GivenFlags set;
};

struct ExperimentFile {
  std::string path;
  std::string about;  // one line for people
  Target target;
  bool past_target = false;  // cells continue after they have reached it
  std::vector<uint64_t> seeds;
  GivenFlags common;  // settings of every cell; a place's override these, a variant's both
  std::vector<Place> places;
  std::vector<Variant> variants;
  std::string text;  // the file as it was read
};

Result<ExperimentFile> read_experiment_file(const std::string& path);

// Parses the text of an experiment file. `path` names the file in errors; paths of scenarios and
// jobs are relative to its folder.
Result<ExperimentFile> parse_experiment(std::string_view text, const std::string& path);

}  // namespace drover
