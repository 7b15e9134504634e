// The plan of an experiment: its cells, each with the command that runs it. Planning makes the
// checks of `drover simulate` and `drover train` before any cell starts.
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
  // Everything its result depends on, as text: the command and a digest of the files it reads. A
  // cell with the same name but another identity is of another experiment.
  std::string identity;
};

// The cells in the order in which they should run: by place, then seed, so that variants can be
// compared early. Errors name the experiment, the place and the variant.
Result<std::vector<Cell>> plan_cells(const ExperimentFile& file);

// "calm / sync / seed 1", for people.
std::string title_of(const ExperimentFile& file, const Cell& cell);

// The name with every character replaced that is unsafe in file names, such as spaces and slashes.
std::string file_name_of(const std::string& name);

}  // namespace drover
