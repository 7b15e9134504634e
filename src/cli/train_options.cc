#include "cli/train_options.h"

#include <fmt/format.h>

#include "cli/shared_flags.h"
#include "core/check.h"
#include "core/nearest.h"
#include "launch/run_setup.h"

namespace drover {
namespace {

std::string default_text(const Setting& setting) {
  const SettingValue value = setting.get(Job{});
  if (const auto* count = std::get_if<uint64_t>(&value)) return fmt::format("{}", *count);
  if (const auto* number = std::get_if<double>(&value)) return fmt::format("{}", *number);
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  return {};
}

std::string type_name(SettingKind kind) {
  switch (kind) {
    case SettingKind::kSwitch:
      return "";
    case SettingKind::kCount:
      return "COUNT";
    case SettingKind::kNumber:
      return "NUMBER";
    case SettingKind::kText:
      return "TEXT";
    case SettingKind::kTexts:
      return "RULE";
  }
  return "";
}

// `also` is another name of the flag, or empty.
void add_flag(CLI::App& app, GivenFlags& flags, const Setting& setting, std::string_view also) {
  std::string flag(setting.flag);
  if (!also.empty()) flag = std::string(also) + "," + flag;
  const std::string help(setting.help);
  CLI::Option* option = nullptr;
  if (setting.kind == SettingKind::kSwitch) {
    // The negation is for job files that say true.
    const std::string names = flag + ",!--no-" + std::string(setting.flag.substr(2));
    option = app.add_flag_function(
        names,
        [&flags, &setting](int64_t count) { flags[setting.flag] = {count > 0 ? "true" : "false"}; },
        help);
  } else {
    option = app.add_option_function<std::vector<std::string>>(
        flag,
        [&flags, &setting](const std::vector<std::string>& texts) { flags[setting.flag] = texts; },
        help);
    // One value each time; several times only where the setting is a list.
    option->allow_extra_args(false)->type_name(type_name(setting.kind));
    if (setting.kind != SettingKind::kTexts) {
      option->expected(1)->multi_option_policy(CLI::MultiOptionPolicy::Throw);
    }
    option->default_str(default_text(setting));
  }
  option->group(std::string(setting.group));
}

// The app the user got to: `drover train` rather than `drover`.
const CLI::App& innermost(const CLI::App& app) {
  const CLI::App* inner = &app;
  while (!inner->get_subcommands().empty()) inner = inner->get_subcommands().front();
  return *inner;
}

}  // namespace

void add_job_flags(CLI::App& app, GivenFlags& flags,
                   const std::function<bool(const Setting&)>& choose,
                   const std::map<std::string_view, std::string_view>& also) {
  for (const Setting& setting : job_settings()) {
    if (choose && !choose(setting)) continue;
    const auto other = also.find(setting.flag);
    add_flag(app, flags, setting, other == also.end() ? "" : other->second);
  }
}

void add_train_options(CLI::App& app, TrainOptions& options) {
  app.add_option("job", options.job_file, "a job file; flags win over what it says")
      ->type_name("JOB.toml")
      ->check([](const std::string& name) {
        return name.empty() ? std::string("the name of the job file is empty") : std::string();
      });
  add_job_flags(app, options.flags);
  app.add_flag("--print-job", options.print_job, "print the job as a job file, and do not train");
  app.add_flag("--json", options.json, "print the result as one line of JSON");
  app.add_flag("--quiet", options.quiet, "report only trouble and the result");
  add_dashboard_flag(app, options.dashboard);
  add_metrics_flag(app, options.metrics);
  add_cluster_options(app, options.cluster);
}

Result<Job> job_of(const TrainOptions& options, const Job& defaults) {
  const Result<Job> job = job_of(options.job_file, options.flags, defaults);
  if (!job) return job;
  if (const Status may = check_listen(job.value().cluster); !may) return may.error();
  return job;
}

std::string explain_unknown_option(const CLI::App& app, const std::vector<std::string>& extras) {
  DROVER_CHECK(!extras.empty());
  // Where commands are expected, everything behind a wrong one is left over as well.
  const auto commands = app.get_subcommands([](const CLI::App*) { return true; });
  std::string word = extras.front();
  if (commands.empty()) {
    // An option's value is left over too: the option is what to talk about.
    for (const std::string& extra : extras) {
      if (!extra.starts_with("-")) continue;
      word = extra;
      break;
    }
  }
  std::vector<std::string> known;
  if (word.starts_with("-")) {
    word = word.substr(0, word.find('='));
    for (const CLI::Option* option : app.get_options()) {
      for (const std::string& name : option->get_lnames()) known.push_back("--" + name);
    }
  } else {
    for (const CLI::App* command : commands) known.push_back(command->get_name());
  }
  const std::vector<std::string_view> names(known.begin(), known.end());
  if (word.starts_with("-")) {
    return fmt::format("unknown option '{}'.{}", word, did_you_mean(word, names));
  }
  if (names.empty()) return fmt::format("unexpected argument '{}'.", word);
  std::string list;
  for (const std::string& name : known) list += (list.empty() ? "" : ", ") + name;
  return fmt::format("unknown command '{}'.{} Known: {}.", word, did_you_mean(word, names), list);
}

std::string explain_parse_error(const CLI::App& app, const CLI::ParseError& trouble) {
  const CLI::App& inner = innermost(app);
  // Asked for first: a mistyped command also shows as "a subcommand is required".
  for (const CLI::App* each : {&inner, &app}) {
    const std::vector<std::string> extras = each->remaining();
    if (!extras.empty()) return explain_unknown_option(*each, extras);
  }
  const std::string words = trouble.what();
  // CLI11's own words for these leave much to guess.
  if (words.find("At Most 1 required") != std::string::npos) {
    return words.substr(0, words.find(':')) + " is given more than once";
  }
  if (words.find("1 required") != std::string::npos && words.find("missing") != std::string::npos) {
    return words.substr(0, words.find(':')) + " needs a value";
  }
  // "Could not convert: --max-wait = 10s"
  constexpr std::string_view kConvert = "Could not convert: ";
  if (const size_t equals = words.find(" = ");
      words.starts_with(kConvert) && equals != std::string::npos) {
    return fmt::format("{}: expected a number, not '{}'",
                       words.substr(kConvert.size(), equals - kConvert.size()),
                       words.substr(equals + 3));
  }
  if (words.find("subcommand is required") != std::string::npos) {
    std::string known;
    for (const CLI::App* each : inner.get_subcommands([](const CLI::App*) { return true; })) {
      known += (known.empty() ? "" : ", ") + each->get_name();
    }
    return "'" + inner.get_name() + "' needs a command. Known: " + known + ".";
  }
  return words;
}

}  // namespace drover
