// Experiment files: a grid of variants, places and seeds, and the target they race to, as TOML.
//
// docs/experiments.md lists the keys. Errors say file, line, column and key, and for an unknown key
// the nearest known one.
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

// Where cells run: on a simulated cluster, or as real processes on this machine.
struct Place {
  std::string name;
  bool real = false;
  std::string file;                 // scenario or job file, as it was written
  std::string path;                 // the same, found from where the experiment file is
  std::vector<std::string> beside;  // words of a command that runs beside each real cell
  GivenFlags set;
};

// What is compared.
struct Variant {
  std::string name;
  GivenFlags set;
};

struct ExperimentFile {
  std::string path;
  std::string about;  // one line for people
  Target target;
  bool past_target = false;  // cells go on when they have reached it
  std::vector<uint64_t> seeds;
  GivenFlags common;  // settings of every cell; a place's win over them, a variant's over both
  std::vector<Place> places;
  std::vector<Variant> variants;
  std::string text;  // the file as it was read
};

Result<ExperimentFile> read_experiment_file(const std::string& path);

// The same for text that was read already. `path` stands for the file in errors; scenarios and jobs
// are looked for relative to its folder.
Result<ExperimentFile> parse_experiment(std::string_view text, const std::string& path);

}  // namespace drover
