// CommandTable: the commands of the program, each with its flags and the function that runs it.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace drover {

// Returns the process's exit status. The command line is kept in run files and reports.
using CommandFunction = std::function<int(const std::string& command_line)>;

// A command, and the options that parsing the command line fills.
template <typename Options>
struct AddedCommand {
  CLI::App& app;
  Options& options;
};

// Adds commands to the program or to a group of commands ("checkpoint inspect").
class CommandGroup {
 public:
  using Functions = std::vector<std::pair<CLI::App*, CommandFunction>>;

  // Both must outlive the group.
  CommandGroup(CLI::App& app, Functions& functions) : app_(app), functions_(functions) {}

  template <typename Options>
  AddedCommand<Options> add(const std::string& name, const std::string& help,
                            int (*run)(const Options&, const std::string& command_line)) {
    auto options = std::make_shared<Options>();
    CLI::App* const added = app_.add_subcommand(name, help);
    functions_.emplace_back(
        added, [options, run](const std::string& line) { return run(*options, line); });
    return {*added, *options};
  }
  // For a function that does not need the command line.
  template <typename Options>
  AddedCommand<Options> add(const std::string& name, const std::string& help,
                            int (*run)(const Options&)) {
    auto options = std::make_shared<Options>();
    CLI::App* const added = app_.add_subcommand(name, help);
    functions_.emplace_back(added, [options, run](const std::string&) { return run(*options); });
    return {*added, *options};
  }

 protected:
  CLI::App& app_;
  Functions& functions_;
};

class CommandTable : public CommandGroup {
 public:
  // `app` must outlive the table.
  explicit CommandTable(CLI::App& app) : CommandGroup(app, all_) { app.require_subcommand(1); }
  CommandTable(const CommandTable&) = delete;
  CommandTable& operator=(const CommandTable&) = delete;

  CommandGroup add_group(const std::string& name, const std::string& help) {
    CLI::App* const group = app_.add_subcommand(name, help);
    group->require_subcommand(1);
    return {*group, all_};
  }

  // Runs the parsed command. REQUIRES: the command line named one.
  int run(const std::string& command_line) const;

 private:
  Functions all_;
};

// Returns the error message for a text that is not a whole number, or "". CLI11 alone would accept
// -1 as a very large unsigned number.
std::string check_whole_number(const std::string& text);

}  // namespace drover
