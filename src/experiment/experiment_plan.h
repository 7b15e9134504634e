// The plan of an experiment: its cells, each with the command that runs it. Making it checks
// everything that `drover simulate` and `drover train` would check, before anything starts.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/result.h"
#include "experiment/experiment_file.h"

namespace drover {

// One run: a variant at a place with a seed.
struct Cell {
  size_t place = 0;
  size_t variant = 0;
  uint64_t seed = 0;
  std::string name;                 // of its files: "calm-sync-1"
  std::vector<std::string> words;   // "simulate", "cluster.toml", "--seed", "1", ...; no run file
  std::vector<std::string> beside;  // as in Place
  bool real = false;
  // All that its result depends on, as text: the command and what is in the files it reads. Two
  // cells of one name with different identities are different experiments.
  std::string identity;
};

// In the order in which they should run: by place, then seed, so that variants can be compared
// early. The error names the experiment, the place and the variant.
Result<std::vector<Cell>> plan_cells(const ExperimentFile& file);

// "calm / sync / seed 1", for people.
std::string title_of(const ExperimentFile& file, const Cell& cell);

// A name without what file names had better not have: spaces, slashes.
std::string file_name_of(const std::string& name);

}  // namespace drover
