#include "cli/train_options.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/shared_flags.h"
#include "core/check.h"
#include "core/former_settings.h"
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

void add_flag(CLI::App& app, GivenFlags& flags, const Setting& setting) {
  const std::string flag = flag_of(setting);
  const std::string help(setting.help);
  CLI::Option* option = nullptr;
  if (setting.kind == SettingKind::kSwitch) {
    // The negation overrides a job file that says true.
    const std::string names = flag + ",!--no-" + flag.substr(2);
    option = app.add_flag_function(
        names,
        [&flags, &setting](int64_t count) { flags[setting.key] = {count > 0 ? "true" : "false"}; },
        help);
  } else {
    option = app.add_option_function<std::vector<std::string>>(
        flag,
        [&flags, &setting](const std::vector<std::string>& texts) { flags[setting.key] = texts; },
        help);
    // One value each time; several times only where the setting is a list.
    option->allow_extra_args(false)->type_name(type_name(setting.kind));
    if (setting.kind != SettingKind::kTexts) {
      option->expected(1)->multi_option_policy(CLI::MultiOptionPolicy::Throw);
    }
    option->default_str(default_text(setting));
  }
  option->group(std::string(name_of(setting.group)));
}

// "beta1=0.8" sets beta1; returns what is wrong with it, or nothing.
std::string set_by_key(const std::string& text, const SettingChoice& choose, GivenFlags& flags) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos) return "expected KEY=VALUE, not '" + text + "'";
  const std::string key = text.substr(0, equals);
  const Setting* const setting = find_setting(key);
  if (setting == nullptr || (choose && !choose(*setting))) {
    if (const auto successor = successor_of_setting(key)) return key + " " + *successor;
    std::vector<std::string_view> known;
    for (const Setting& each : job_settings()) {
      if (!choose || choose(each)) known.push_back(each.key);
    }
    return fmt::format("unknown key '{}'.{}", key, did_you_mean(key, known));
  }
  const std::string value = text.substr(equals + 1);
  if (setting->kind == SettingKind::kTexts) {
    flags[setting->key].push_back(value);
  } else if (!flags.try_emplace(setting->key, std::vector<std::string>{value}).second) {
    return key + " is given more than once";
  }
  return {};
}

// The app of the command that was parsed: `drover train` rather than `drover`.
const CLI::App& innermost(const CLI::App& app) {
  const CLI::App* inner = &app;
  while (!inner->get_subcommands().empty()) inner = inner->get_subcommands().front();
  return *inner;
}

// What to write in place of a flag that older versions had, or that is only a key of job files.
std::optional<std::string> former_option(const CLI::App& app, const std::string& word) {
  const bool negated = word.starts_with("--no-");
  std::string key = word.substr(std::min(word.size(), size_t{negated ? 5U : 2U}));
  std::replace(key.begin(), key.end(), '-', '_');
  const auto flag = [](std::string_view name) {
    std::string text = "--" + std::string(name);
    std::replace(text.begin(), text.end(), '_', '-');
    return text;
  };
  const auto exists = [&](std::string_view name) {
    return app.get_option_no_throw(flag(name)) != nullptr;
  };
  const Setting* const setting = find_setting(key);
  if (setting != nullptr && setting->listing == Listing::kJobFile && exists("set"))
    return fmt::format("'{}' is no flag: use --set {}=VALUE, or a job file", word, key);
  auto successor = successor_of_setting(key, exists);
  if (!successor) return std::nullopt;
  constexpr std::string_view kIsNow = "is now ";
  if (successor->starts_with(kIsNow))
    successor = std::string(kIsNow) + flag(successor->substr(kIsNow.size()));
  return fmt::format("{} {}", word, *successor);
}

}  // namespace

void add_job_flags(CLI::App& app, GivenFlags& flags, const SettingChoice& choose) {
  for (const Setting& setting : job_settings()) {
    if (setting.listing == Listing::kJobFile || (choose && !choose(setting))) continue;
    add_flag(app, flags, setting);
  }
}

void add_set_option(CLI::App& app, GivenFlags& flags, const SettingChoice& choose) {
  app.add_option_function<std::vector<std::string>>(
         "--set",
         [&flags, choose](const std::vector<std::string>& texts) {
           for (const std::string& text : texts) {
             const std::string wrong = set_by_key(text, choose, flags);
             if (!wrong.empty()) throw CLI::ValidationError("--set", wrong);
           }
         },
         "set any key of a job file: --set beta1=0.8")
      ->allow_extra_args(false)
      ->type_name("KEY=VALUE");
}

void add_train_options(CLI::App& app, TrainOptions& options) {
  app.add_option("job", options.job_file, "job file; flags override its settings")
      ->type_name("JOB.toml")
      ->check([](const std::string& name) {
        return name.empty() ? std::string("the name of the job file is empty") : std::string();
      });
  add_job_flags(app, options.flags);
  add_set_option(app, options.flags);
  app.add_flag("--print-job", options.print_job, "print the settings as a job file, and stop");
  app.add_flag("--json", options.json, "print the result as one line of JSON");
  app.add_flag("--quiet", options.quiet, "print only errors and the result");
  add_dashboard_flag(app, options.dashboard);
  add_metrics_flag(app, options.metrics);
  add_cluster_options(app, options.cluster);
  add_help_all(app);
}

Result<Job> job_of(const TrainOptions& options, const Job& defaults) {
  const Result<Job> job = job_of(options.job_file, options.flags, defaults);
  if (!job) return job;
  if (const Status may = check_listen(job.value().cluster); !may) return may.error();
  return job;
}

std::string explain_unknown_option(const CLI::App& app, const std::vector<std::string>& extras) {
  DROVER_CHECK(!extras.empty());
  // Where a command is expected, everything after a wrong one remains as well.
  const auto commands = app.get_subcommands([](const CLI::App*) { return true; });
  std::string word = extras.front();
  if (commands.empty()) {
    // The value of an unknown option remains too; the option is what to report.
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
    if (const auto former = former_option(app, word)) return *former;
    return fmt::format("unknown option '{}'.{}", word, did_you_mean(word, names));
  }
  if (names.empty()) return fmt::format("unexpected argument '{}'.", word);
  std::string list;
  for (const std::string& name : known) list += (list.empty() ? "" : ", ") + name;
  return fmt::format("unknown command '{}'.{} Known: {}.", word, did_you_mean(word, names), list);
}

std::string explain_parse_error(const CLI::App& app, const CLI::ParseError& trouble) {
  const CLI::App& inner = innermost(app);
  // Checked first: a mistyped command also raises "a subcommand is required".
  for (const CLI::App* each : {&inner, &app}) {
    const std::vector<std::string> extras = each->remaining();
    if (!extras.empty()) return explain_unknown_option(*each, extras);
  }
  const std::string words = trouble.what();
  // CLI11's own messages for these are unclear.
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
