#include "experiment/experiment_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>
#include <set>
#include <sstream>

#include "job/settings.h"
#include "job/toml_keys.h"

namespace drover {
namespace {

// A job setting that only the experiment itself determines, with the end of an error message.
struct GridSetting {
  std::string_view key;
  std::string_view why;
};
constexpr std::array<GridSetting, 4> kGridSettings = {
    {{"seed", "not allowed here; list the seeds of all cells in 'seeds' at the top of the file"},
     {"stop_at", "not allowed here; use 'target' at the top of the file"},
     {"run_file", "not allowed here; each cell has a run file in the folder of the experiment"},
     {"save_model", "not allowed here; an experiment does not save models"}}};

// The job settings in a table, as flags. `whose` is the prefix of complaints.
GivenFlags read_settings(const toml::table& table, const std::string& whose,
                         std::vector<Complaint>& complaints) {
  Job job;
  std::vector<Complaint> wrong;
  read_job_table(table, job, wrong);
  GivenFlags flags;
  for (const Setting& setting : job_settings()) {
    const std::string key(setting.key);
    const toml::node* node = table.get(key);
    if (node == nullptr) continue;
    const auto* grid = std::find_if(kGridSettings.begin(), kGridSettings.end(),
                                    [&](const GridSetting& each) { return each.key == key; });
    if (grid != kGridSettings.end())
      wrong.push_back({node->source().begin, fmt::format("{}: {}", key, grid->why)});
    flags[setting.key] = flag_texts(setting.get(job));
  }
  for (const Complaint& each : wrong)
    complaints.push_back({each.at, fmt::format("{}: {}", whose, each.what)});
  return flags;
}

void read_settings_at(TomlKeys& keys, std::string_view key, const std::string& whose,
                      GivenFlags& flags, std::vector<Complaint>& complaints) {
  const toml::node* node = keys.node(key);
  if (node == nullptr) return;
  if (const auto* table = node->as_table()) {
    flags = read_settings(*table, whose, complaints);
  } else {
    keys.complain(key, fmt::format("expected a table of settings such as {{ policy = \"sync\" }}, "
                                   "found {}",
                                   words_for(node->type())));
  }
}

void read_seeds(TomlKeys& top, std::vector<uint64_t>& seeds) {
  const toml::node* node = top.node("seeds");
  top.need("seeds", "[1, 2, 3]");
  if (node == nullptr) return;
  const auto* list = node->as_array();
  if (list == nullptr || list->empty() || list->size() > kSeedsMax)
    return top.complain("seeds", "must be a list of whole numbers such as [1, 2, 3]");
  for (const toml::node& each : *list) {
    const auto* seed = each.as_integer();
    if (seed == nullptr || seed->get() < 0) {
      return top.complain("seeds", "must be whole numbers, not negative: [1, 2, 3]");
    }
    const auto value = static_cast<uint64_t>(seed->get());
    if (std::find(seeds.begin(), seeds.end(), value) != seeds.end())
      return top.complain("seeds", fmt::format("{} is listed twice", value));
    seeds.push_back(value);
  }
}

// A list of words, or a text that is split at spaces. No shell is used.
void read_beside(TomlKeys& keys, std::vector<std::string>& words) {
  const toml::node* node = keys.node("beside");
  if (node == nullptr) return;
  if (const auto* list = node->as_array()) {
    for (const toml::node& each : *list) {
      if (!each.is_string()) break;
      words.push_back(each.as_string()->get());
    }
    if (words.empty() || words.size() != list->size() || words.front().empty())
      keys.complain("beside", "must be a list of words such as [\"stress-ng\", \"--cpu\", \"2\"]");
    return;
  }
  keys.parsed("beside", [&](const std::string& text) -> Status {
    if (text.find_first_of("'\"|&;<>$`\\*") != std::string::npos) {
      return invalid_input(
          "has shell syntax but is run without a shell; write it as a list of words, such as "
          "[\"sh\", \"-c\", \"...\"]");
    }
    std::istringstream stream(text);
    for (std::string word; stream >> word;) words.push_back(word);
    return words.empty() ? invalid_input("must name a command") : done();
  });
}

std::string quoted_name(std::string_view kind, const std::string& name) {
  return name.empty() ? fmt::format("[[{}]]", kind) : fmt::format("{} '{}'", kind, name);
}

void read(TomlKeys& keys, Place& place, const std::filesystem::path& folder,
          std::vector<Complaint>& complaints) {
  keys.need("name", "\"calm\"");
  keys.text("name", place.name);
  std::string scenario;
  std::string job;
  keys.text("scenario", scenario);
  keys.text("job", job);
  if (keys.has("scenario") == keys.has("job"))
    keys.complain(
        "needs either a scenario (simulated) or a job (real processes), such as scenario = "
        "\"cluster.toml\"");
  place.real = keys.has("job");
  place.file = place.real ? job : scenario;
  place.path = (folder / place.file).lexically_normal().string();
  read_beside(keys, place.beside);
  if (keys.has("beside") && !place.real)
    keys.complain("beside",
                  "only for places with real processes; describe simulated load in the scenario");
  read_settings_at(keys, "set", quoted_name("place", place.name), place.set, complaints);
}

void read(TomlKeys& keys, Variant& variant, const std::filesystem::path&,
          std::vector<Complaint>& complaints) {
  keys.need("name", "\"sync\"");
  keys.text("name", variant.name);
  read_settings_at(keys, "set", quoted_name("variant", variant.name), variant.set, complaints);
}

// [[place]] or [[variant]]: at least one, with distinct names.
template <typename Each>
void read_all(TomlKeys& top, std::string_view key, std::string_view example, std::vector<Each>& all,
              const std::filesystem::path& folder, std::vector<Complaint>& complaints) {
  const toml::node* node = top.node(key);
  top.need(key, example);
  if (node == nullptr) return;
  const auto* array = node->as_array();
  if (array == nullptr || array->empty() || !array->is_array_of_tables())
    return top.complain(
        key, fmt::format("expected tables [[{}]], found {}", key, words_for(node->type())));
  std::set<std::string> names;
  for (const toml::node& each : *array) {
    TomlKeys keys(*each.as_table(), fmt::format("[[{}]]", key), complaints);
    Each& one = all.emplace_back();
    read(keys, one, folder, complaints);
    if (keys.has("name") && one.name.empty()) keys.complain("name", "must not be empty");
    if (!one.name.empty() && !names.insert(one.name).second)
      keys.complain("name", fmt::format("'{}' is used twice; rename one of them", one.name));
    keys.finish();
  }
}

}  // namespace

Result<ExperimentFile> parse_experiment(std::string_view text, const std::string& path) {
  const auto table = parse_toml(text, path);
  if (!table) return table.error();
  ExperimentFile file;
  file.path = path;
  file.text = text;
  std::vector<Complaint> complaints;
  const auto folder = std::filesystem::path(path).parent_path();
  TomlKeys top(table.value(), "an experiment", complaints);
  top.text("about", file.about);
  top.need("target", "\"accuracy=0.9\"");
  top.parsed("target", [&](const std::string& given) -> Status {
    const auto target = parse_target(given);
    if (!target) return target.error();
    file.target = target.value();
    return done();
  });
  top.flag("past_target", file.past_target);
  read_seeds(top, file.seeds);
  read_settings_at(top, "common", "[common]", file.common, complaints);
  read_all(top, "place", R"([{ name = "cluster", scenario = "cluster.toml" }])", file.places,
           folder, complaints);
  read_all(top, "variant", R"([{ name = "sync", set = { policy = "sync" } }])", file.variants,
           folder, complaints);
  top.finish();
  if (!complaints.empty()) return first_of(complaints, path);
  return file;
}

Result<ExperimentFile> read_experiment_file(const std::string& path) {
  const auto text = read_toml_file(path, "experiment");
  if (!text) return text.error();
  return parse_experiment(text.value(), path);
}

}  // namespace drover
