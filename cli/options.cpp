#include "cli/options.h"

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include <CLI/CLI.hpp>

#include "base/text.h"
#include "cli/argv_prepass.h"
#include "cli/option_table.h"
#include "cli/option_values.h"
#include "cli/suggestion.h"

namespace ddl::cli {

namespace {

constexpr std::size_t kOptionCount = static_cast<std::size_t>(OptionId::kCount);

using Refusal = tl::unexpected<CommandLineError>;

Refusal refuse(std::string message, std::string hint) {
  return Refusal(CommandLineError{std::move(message), std::move(hint)});
}

/// What was given for every available option, as text; a flag has one value for each time it was given.
class GivenOptions {
 public:
  std::vector<std::string>& operator[](OptionId id) { return values_[static_cast<std::size_t>(id)]; }
  const std::vector<std::string>& operator[](OptionId id) const {
    return values_[static_cast<std::size_t>(id)];
  }
  bool has(OptionId id) const { return !(*this)[id].empty(); }

 private:
  std::array<std::vector<std::string>, kOptionCount> values_;
};

Refusal refuse_unavailable(const OptionEntry& entry, const std::vector<std::string>& values) {
  const std::string name = display_name(entry);
  std::string hint(entry.help);
  // "localhost:4" holds the number that the user meant.
  if (canonical_spelling(entry) == "--hosts" && !values.empty()) {
    const std::string& hosts = values.front();
    const std::size_t colon = hosts.rfind(':');
    const bool one_host = hosts.find(',') == std::string::npos && colon != std::string::npos;
    if (one_host && parse_rank_count(hosts.substr(colon + 1))) {
      hint = "this version starts ranks on this machine only; leave -H away and use -np " +
             hosts.substr(colon + 1);
    }
  }
  return entry.id == OptionId::kForeign ? refuse(name + " is no option of ddlrun", hint)
                                        : refuse(name + " is not in this version", hint);
}

Refusal refuse_unknown(const std::string& word) {
  const auto suggestion = suggest_option(word);
  return refuse("unknown option " + shell_quote(word),
                suggestion ? "did you mean " + *suggestion + "?" : "ddlrun --help lists the options");
}

/// CLI11 throws this for an option without its value and for a flag with one.
Refusal refuse_arity(const std::vector<std::string>& options) {
  const OptionEntry* last = find_spelling(options.back());
  if (last != nullptr && last->takes_value()) {
    return refuse(display_name(*last) + " needs a value", usage_line(*last));
  }
  for (const std::string& word : options) {
    const OptionEntry* flag = find_spelling(std::string_view(word).substr(0, word.find('=')));
    if (flag != nullptr && !flag->takes_value() && word.find('=') != std::string::npos) {
      return refuse(display_name(*flag) + " takes no value, but " + shell_quote(word) + " gives one",
                    "write " + std::string(canonical_spelling(*flag)));
    }
  }
  return refuse("an option lacks its value or has one too many", "ddlrun --help lists the options");
}

/// Has CLI11 collect the words of options by option.
tl::expected<GivenOptions, CommandLineError> collect(const std::vector<std::string>& options) {
  CLI::App app;
  app.set_help_flag();
  app.allow_extras();
  std::vector<std::pair<const OptionEntry*, CLI::Option*>> defined;
  for (const OptionEntry& entry : option_table()) {
    const std::string name(canonical_spelling(entry));
    // CLI11 compares every new option with all before it: the many that are not there would cost 0.2 ms at every start.
    if (!entry.is_available() && std::find(options.begin(), options.end(), name) == options.end()) continue;
    CLI::Option* option = nullptr;
    if (entry.takes_value()) {
      option = app.add_option(name);
      // An option that is refused anyway is refused with and without its value.
      if (!entry.is_available()) option->expected(0, 1);
      option->allow_extra_args(false);
    } else {
      option = app.add_flag(name)->disable_flag_override();
    }
    option->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    defined.emplace_back(&entry, option);
  }

  try {
    std::vector<std::string> reversed(options.rbegin(), options.rend());  // as CLI11 wants them
    app.parse(reversed);
  } catch (const CLI::ArgumentMismatch&) {
    return refuse_arity(options);
  } catch (const CLI::Error& error) {
    return refuse(error.what(), "ddlrun --help lists the options");
  }

  GivenOptions given;
  std::optional<Refusal> unavailable;
  for (const auto& [entry, option] : defined) {
    if (option->count() == 0) continue;
    if (entry->is_available()) {
      given[entry->id] = option->results();
    } else if (!unavailable) {
      unavailable = refuse_unavailable(*entry, option->results());
    }
  }
  // Who asks for help gets it, whatever else is wrong.
  if (given.has(OptionId::kHelp) || given.has(OptionId::kVersion)) return given;
  if (unavailable) return *unavailable;
  if (const auto unknown = app.remaining(); !unknown.empty()) return refuse_unknown(unknown.front());
  return given;
}

/// "python train.py", or its beginning, for a hint.
std::string command_excerpt(const std::vector<std::string>& command) {
  constexpr std::size_t kEnough = 60;
  std::string text;
  for (const std::string& word : command) {
    const std::string quoted = shell_quote(word);
    if (text.size() + quoted.size() > kEnough) return text + (text.empty() ? "command..." : " ...");
    text += (text.empty() ? "" : " ") + quoted;
  }
  return text.empty() ? "command args..." : text;
}

Refusal refuse_missing_np(const std::vector<std::string>& command, int allowed_cpus) {
  const bool np_after_command = std::any_of(command.begin(), command.end(), [](const std::string& word) {
    const OptionEntry* entry = find_spelling(std::string_view(word).substr(0, word.find('=')));
    return entry != nullptr && entry->id == OptionId::kNumProc;
  });
  if (np_after_command) {
    return refuse("-np is missing: the one after " + shell_quote(command.front()) + " belongs to the command",
                  "options of ddlrun come before the command");
  }
  return refuse("-np is missing: how many ranks?",
                "this machine has room for " + std::to_string(allowed_cpus) + ": ddlrun -np " +
                    std::to_string(allowed_cpus) + " " + command_excerpt(command));
}

/// Fills a JobSpec; the first value that cannot be meant ends it.
class JobReader {
 public:
  JobReader(const GivenOptions& given, const CommandLineContext& context)
      : given_(given), context_(context) {}

  tl::expected<launcher::JobSpec, CommandLineError> read(std::vector<std::string> command) {
    launcher::JobSpec job;
    job.workdir = context_.current_directory;
    const auto seconds = [](const std::string& text) { return parse_seconds(text, false); };
    const auto grace = [](const std::string& text) { return parse_seconds(text, true); };
    const auto directory = [this](const std::string& text) {
      return parse_directory(text, context_.current_directory);
    };
    take(OptionId::kNumProc, parse_rank_count, job.num_proc);
    take(OptionId::kTimeout, seconds, job.timeout_seconds);
    take(OptionId::kKillGrace, grace, job.kill_grace_seconds);
    take(OptionId::kStdin, parse_stdin_target, job.stdin_target);
    take(OptionId::kWorkdir, directory, job.workdir);
    take(OptionId::kOutputFilename, directory, job.output_directory);
    for (const std::string& text : given_[OptionId::kExport]) {
      job.exports.push_back(value_of(OptionId::kExport, parse_export(text)));
    }
    exclude(OptionId::kTagOutput, OptionId::kNoTagOutput);
    exclude(OptionId::kVerbose, OptionId::kQuiet);
    if (refusal_) return Refusal(*refusal_);
    if (command.empty()) {
      return refuse("no command was given",
                    "for example: ddlrun -np " + std::to_string(context_.allowed_cpus) + " python train.py");
    }
    if (command.front().empty()) return refuse("the command is an empty word", "name a program");
    if (!given_.has(OptionId::kNumProc)) return refuse_missing_np(command, context_.allowed_cpus);

    job.command = std::move(command);
    job.tag_output =
        given_.has(OptionId::kTagOutput) || (job.num_proc > 1 && !given_.has(OptionId::kNoTagOutput));
    job.timestamp_output = given_.has(OptionId::kPrefixTimestamp);
    job.oversubscribe = given_.has(OptionId::kOversubscribe);
    job.verbose = given_.has(OptionId::kVerbose);
    job.quiet = given_.has(OptionId::kQuiet);
    return job;
  }

 private:
  void refuse_once(std::string message, std::string hint) {
    if (!refusal_) refusal_ = CommandLineError{std::move(message), std::move(hint)};
  }

  template <class T>
  T value_of(OptionId id, Result<T> parsed) {
    if (parsed) return std::move(*parsed);
    refuse_once(display_name(entry_of(id)) + ": " + parsed.error().message(), usage_line(entry_of(id)));
    return T{};
  }

  template <class T, class Parse>
  void take(OptionId id, Parse parse, T& target) {
    const std::vector<std::string>& values = given_[id];
    if (values.empty()) return;
    if (values.size() > 1) {
      refuse_once(display_name(entry_of(id)) + " was given " + std::to_string(values.size()) +
                      " times: " + join(values, ", "),
                  "give it once");
    }
    target = value_of(id, parse(values.front()));
  }

  void exclude(OptionId one, OptionId other) {
    if (!given_.has(one) || !given_.has(other)) return;
    refuse_once(
        display_name(entry_of(one)) + " and " + display_name(entry_of(other)) + " contradict each other",
        "leave one of them away");
  }

  const GivenOptions& given_;
  const CommandLineContext& context_;
  std::optional<CommandLineError> refusal_;
};

}  // namespace

tl::expected<Request, CommandLineError> parse_command_line(std::span<const std::string> words,
                                                           const CommandLineContext& context) {
  SplitArgv split = split_argv(words);
  const auto given = collect(split.options);
  if (!given) return Refusal(given.error());

  Request request;
  request.json = given->has(OptionId::kJson);
  request.job.verbose = given->has(OptionId::kVerbose);
  request.job.quiet = given->has(OptionId::kQuiet);
  if (given->has(OptionId::kHelp)) {
    request.action = Action::kHelp;
  } else if (given->has(OptionId::kVersion)) {
    request.action = Action::kVersion;
  } else if (given->has(OptionId::kCheckBuild)) {
    request.action = Action::kCheckBuild;
  } else {
    request.action = given->has(OptionId::kDryRun) ? Action::kDryRun : Action::kRun;
    auto job = JobReader(*given, context).read(std::move(split.command));
    if (!job) return Refusal(job.error());
    request.job = std::move(*job);
  }
  return request;
}

}  // namespace ddl::cli
