#include "cli/options/request.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "base/text.h"
#include "cli/options/command_mistakes.h"
#include "cli/options/given_options.h"
#include "cli/options/help_pages.h"
#include "cli/options/option_table.h"
#include "cli/options/readers.h"
#include "cli/options/typing_mistakes.h"
#include "launcher/scheduler/scheduler.h"

namespace ddl::cli {

namespace {

tl::unexpected<Error> refuse_config(std::string message) {
  return refuse(std::move(message), usage_line(entry_of(OptionId::kConfigFile)));
}

/// Adds the options of --config-file. Options of the command line win.
Result<GivenOptions> with_config(GivenOptions given, const CommandLineContext& context) {
  if (!given.has(OptionId::kConfigFile)) return given;
  const auto& names = given[OptionId::kConfigFile];
  if (names.size() > 1)
    return refuse_config("--config-file was given " + std::to_string(names.size()) + " times");
  const std::string name = names.front().text;
  if (name.empty()) return refuse_config("--config-file: the name of the file is empty");
  if (!context.read_file) return refuse_config("--config-file: no files can be read here");
  const auto text = context.read_file(name);
  if (!text) return refuse_config("the configuration file cannot be read: " + text.error().message());
  DDL_ASSIGN(config, read_config(*text, name == "-" ? "standard input" : name));
  given.complete_from(std::move(config));
  return given;
}

Action action_of(const GivenOptions& given) {
  if (given.has(OptionId::kHelp)) return Action::kHelp;
  if (given.has(OptionId::kVersion)) return Action::kVersion;
  if (given.has(OptionId::kCompletion)) return Action::kCompletion;
  if (given.has(OptionId::kCheckBuild) || given.has(OptionId::kCheckCapability)) return Action::kCheckBuild;
  if (given.has(OptionId::kCheckHosts)) return Action::kCheckHosts;
  if (given.has(OptionId::kInspect)) return Action::kInspect;
  if (given.has(OptionId::kTimeline)) return Action::kTimeline;
  if (given.has(OptionId::kLint)) return Action::kLint;
  if (given.has(OptionId::kListSites)) return Action::kListSites;
  if (given.has(OptionId::kShowSite)) return Action::kShowSite;
  if (given.has(OptionId::kShowBind) || given.has(OptionId::kExplainBind) ||
      given.has(OptionId::kShowTopology))
    return Action::kShowBind;
  if (given.has(OptionId::kSlurm)) return Action::kScript;
  return given.has(OptionId::kDryRun) ? Action::kDryRun : Action::kRun;
}

/// The options that choose an action other than to start ranks. Those of the same action may be combined.
constexpr std::pair<OptionId, Action> kActionOptions[] = {
    {OptionId::kCheckBuild, Action::kCheckBuild}, {OptionId::kCheckCapability, Action::kCheckBuild},
    {OptionId::kCheckHosts, Action::kCheckHosts}, {OptionId::kLint, Action::kLint},
    {OptionId::kInspect, Action::kInspect},       {OptionId::kTimeline, Action::kTimeline},
    {OptionId::kListSites, Action::kListSites},   {OptionId::kShowSite, Action::kShowSite},
    {OptionId::kShowBind, Action::kShowBind},     {OptionId::kExplainBind, Action::kShowBind},
    {OptionId::kShowTopology, Action::kShowBind}, {OptionId::kSlurm, Action::kScript},
    {OptionId::kDryRun, Action::kDryRun},         {OptionId::kCompletion, Action::kCompletion},
};

/// Refuses two different actions, because one of them would be ignored silently.
Status refuse_two_actions(const GivenOptions& given) {
  std::optional<std::pair<OptionId, Action>> first;
  for (const auto& option : kActionOptions) {
    if (!given.has(option.first)) continue;
    if (!first) first = option;
    // The readers of these actions refuse --dry-run with a more exact message.
    const bool is_refused_later = option.second == Action::kDryRun &&
                                  (first->second == Action::kScript || first->second == Action::kShowBind);
    if (option.second == first->second || is_refused_later) continue;
    return refuse(display_name(entry_of(first->first)) + " and " + display_name(entry_of(option.first)) +
                      " contradict each other",
                  "omit one of them");
  }
  return {};
}

/// The option that chose the action, as it was typed.
std::string action_name(Action action, const GivenOptions& given) {
  const auto* option =
      std::find_if(std::begin(kActionOptions), std::end(kActionOptions),
                   [&](const auto& one) { return one.second == action && given.has(one.first); });
  DDL_CHECK(option != std::end(kActionOptions), "an action without its option");
  return given.typed_name(option->first);
}

/// Refuses words in the place of a command after an action that starts no command.
Status refuse_words(Action action, const GivenOptions& given, const std::vector<std::string>& words) {
  const bool takes_command = action == Action::kRun || action == Action::kDryRun || action == Action::kScript;
  if (takes_command || words.empty()) return {};
  if (action == Action::kTimeline && words.size() == 1) return {};
  const std::string word = shell_quote(action == Action::kTimeline ? words[1] : words.front());
  std::string hint = "omit it; options come before any other word";
  if (action == Action::kCheckBuild && !given.has(OptionId::kCheckCapability))
    hint = "to check one capability: --check-build=" + word;
  if (action == Action::kInspect) hint = "name one job: --inspect JOB; other options come before or after it";
  if (action == Action::kTimeline) hint = "name one job, after all options: ddlrun --timeline start JOB";
  if (action == Action::kLint) hint = "check one script at a time: --lint " + word;
  return refuse(action_name(action, given) + " starts no command, but " + word + " follows the options",
                std::move(hint));
}

/// mpirun's and srun's -v means --verbose. A job must not seem to have run because the version was printed.
Status refuse_version_of_job(Action action, const GivenOptions& given,
                             const std::vector<std::string>& command) {
  if (action != Action::kVersion || command.empty() || given.typed_name(OptionId::kVersion) != "-v")
    return {};
  return refuse("-v prints the version and starts nothing, but the command " + shell_quote(command.front()) +
                    " follows",
                "write --verbose to see each step of the start, or --version alone");
}

/// Whether an option has an effect on an action that starts no command and reads no binding.
bool is_used_by(Action action, const OptionEntry& entry) {
  using enum OptionId;
  const OptionId id = entry.id;
  if (id == kVerbose || id == kQuiet || id == kConfigFile) return true;
  switch (action) {
    case Action::kLint: return id == kLint || id == kSite || id == kJson;
    case Action::kListSites: return id == kListSites || id == kJson;
    case Action::kShowSite: return id == kShowSite;
    case Action::kCompletion: return id == kCompletion;
    case Action::kInspect: return id == kInspect || id == kWatch || id == kJson;
    case Action::kTimeline: return id == kTimeline || id == kTimelineFile;
    case Action::kShowBind:
      // read_binding_view() has a sentence for the last four.
      return entry.group == OptionGroup::kBinding || id == kNumProc || id == kRanksPerNode || id == kMapBy ||
             id == kRankBy || id == kOversubscribe || id == kJson || id == kRankfile || id == kProbe ||
             id == kDryRun || id == kHosts || id == kHostfile;
    case Action::kCheckBuild:
      // On other hosts a rank runs the check. -np is accepted, as horovodrun does, with a note.
      if (id == kExport || id == kWorkdir || id == kNumProc) return true;
      [[fallthrough]];
    case Action::kCheckHosts:
      return entry.group != OptionGroup::kRanks && entry.group != OptionGroup::kBinding &&
             entry.group != OptionGroup::kInputOutput;
    default: return true;
  }
}

bool is_typed(const GivenOptions& given, OptionId id) {
  const auto& values = given[id];
  return std::any_of(values.begin(), values.end(),
                     [](const GivenValue& value) { return value.where.empty(); });
}

/// --inspect reads no options of a job.
Result<Request> read_inspection(Request request, const GivenOptions& given) {
  ValueReader values(given);
  values.take(
      OptionId::kInspect, [](const std::string& text) { return Result<std::string>(text); },
      request.inspect.job);
  request.inspect.watches = given.has(OptionId::kWatch);
  DDL_TRY(values.status());
  return request;
}

/// The word that follows names the job.
Result<Request> read_timeline(Request request, const GivenOptions& given,
                              const std::vector<std::string>& words, const CommandLineContext& context) {
  ValueReader values(given);
  const auto starts = [](const std::string& text) -> Result<bool> {
    if (text == "start" || text == "stop") return text == "start";
    return refuse("\"" + text + "\" is neither start nor stop");
  };
  values.take(OptionId::kTimeline, starts, request.timeline.starts);
  values.take(
      OptionId::kTimelineFile,
      [&](const std::string& text) { return parse_file(text, context.current_directory); },
      request.timeline.file);
  DDL_TRY(values.status());
  if (!request.timeline.starts && is_typed(given, OptionId::kTimelineFile))
    return refuse("--timeline-filename belongs to --timeline start", "omit it");
  if (!words.empty() && words.front().empty())
    return refuse("the name of the job is empty", "name one, or omit it if you have one job");
  if (!words.empty()) request.inspect.job = words.front();
  return request;
}

/// Refuses options that an action would ignore silently. A configuration file may contain them for other calls.
Status refuse_unused(Action action, const GivenOptions& given) {
  for (const OptionEntry& entry : option_table()) {
    if (is_used_by(action, entry) || !is_typed(given, entry.id)) continue;
    const bool is_output = entry.id == OptionId::kScriptFile || entry.id == OptionId::kOutput;
    return refuse(
        action_name(action, given) + " does not use " + display_name(entry),
        action == Action::kShowBind && is_output ? "what it prints goes to a file by > FILE" : "omit it");
  }
  if (action == Action::kScript && is_typed(given, OptionId::kJson) && !given.has(OptionId::kSubmit))
    return refuse("--json with --slurm belongs to --submit: a script is not JSON",
                  "omit it, or add --submit");
  return {};
}

Result<Request> without_unused(Result<Request> request, const GivenOptions& given) {
  if (!request) return request;
  DDL_TRY(refuse_unused(request->action, given));
  return request;
}

std::vector<std::string> notes_of(Action action, const GivenOptions& given) {
  std::vector<std::string> notes;
  if (action == Action::kCheckBuild && is_typed(given, OptionId::kNumProc))
    notes.push_back(given.typed_name(OptionId::kNumProc) + " changes nothing: " + action_name(action, given) +
                    " starts no ranks");
  for (const OptionWithoutEffect& one : given.without_effect) {
    std::string_view reason = one.entry->help;
    // The rest says what to do if another value was meant.
    if ((one.entry->rules & kZeroIsDefault) != 0) reason = reason.substr(0, reason.find(';'));
    notes.push_back((one.where.empty() ? "" : one.where + ": ") + one.name +
                    " changes nothing: " + std::string(reason));
  }
  return notes;
}

/// topics: the values of --help.
Result<Request> with_help(Request request, const std::vector<GivenValue>& topics) {
  auto page = help_text(topics.empty() ? "" : topics.back().text);
  if (!page) return fail(page.error().with_hint("ddlrun --help alone shows how to begin"));
  request.help = *std::move(page);
  return request;
}

}  // namespace

Result<Request> parse_command_line(std::span<const std::string> words, const CommandLineContext& context) {
  SplitArgv split = split_argv(words);
  DDL_ASSIGN(typed, collect_options(split));

  Request request;
  request.action = action_of(typed);
  DDL_TRY(refuse_version_of_job(request.action, typed, split.command));
  // Both are obeyed before any file is read.
  if (request.action == Action::kHelp) return with_help(std::move(request), typed[OptionId::kHelp]);
  if (request.action == Action::kVersion) return request;
  DDL_TRY(refuse_mistyped_value(typed));
  DDL_TRY(refuse_command(split, typed));
  DDL_TRY(refuse_unexpanded(typed));
  DDL_TRY(refuse_two_actions(typed));
  DDL_ASSIGN(given, with_config(std::move(typed), context));
  request.action = action_of(given);
  // And once more, with the options of the file.
  if (request.action == Action::kHelp) return with_help(std::move(request), {});
  if (request.action == Action::kVersion) return request;
  DDL_TRY(refuse_unexpanded(given));
  if (request.action != Action::kInspect && is_typed(given, OptionId::kWatch))
    return refuse("--watch belongs to --inspect, which shows a running job", "add --inspect, or omit it");
  DDL_TRY(refuse_words(request.action, given, split.command));
  request.notes = notes_of(request.action, given);
  request.json = given.has(OptionId::kJson);
  request.job.verbose = given.has(OptionId::kVerbose);
  request.job.quiet = given.has(OptionId::kQuiet);
  if (request.action == Action::kInspect)
    return without_unused(read_inspection(std::move(request), given), given);
  if (request.action == Action::kTimeline)
    return without_unused(read_timeline(std::move(request), given, split.command, context), given);
  if (request.action == Action::kShowBind)
    return without_unused(read_binding_view(std::move(request), given), given);
  if (request.action == Action::kCompletion) {
    ValueReader values(given);
    values.take(OptionId::kCompletion, parse_shell, request.shell);
    DDL_TRY(values.status());
    return without_unused(std::move(request), given);
  }
  const bool views_scripts = request.action == Action::kLint || request.action == Action::kListSites ||
                             request.action == Action::kShowSite;
  if (views_scripts) return without_unused(read_script_view(std::move(request), given), given);
  if (request.action == Action::kScript) {
    auto job = read_job(std::move(request), given, std::move(split.command), context);
    if (!job) return job;
    return without_unused(read_script(*std::move(job), given), given);
  }
  DDL_TRY(refuse_script_options(given));
  if (request.action == Action::kCheckBuild) {
    if (given.has(OptionId::kCheckCapability)) {
      const auto& keys = given[OptionId::kCheckCapability];
      const std::string name = given.typed_name(OptionId::kCheckCapability);
      if (keys.size() > 1)
        return refuse(name + " was given two names: " + keys[0].text + ", " + keys[1].text, "give one");
      request.capability = keys.front().text;
      // --check-build=$NAME with an unset NAME must not check everything and exit with 0.
      if (request.capability.empty())
        return refuse(name + ": the name is empty", "name a capability, or omit the '='");
    }
    const bool is_local = given.has(OptionId::kLauncher) && given[OptionId::kLauncher].back().text == "local";
    if (!is_local && (given.has(OptionId::kHosts) || given.has(OptionId::kHostfile) ||
                      !launcher::job_id_here(context.environment).empty()))
      return without_unused(read_job(std::move(request), given, std::move(split.command), context), given);
    return without_unused(std::move(request), given);
  }
  return without_unused(read_job(std::move(request), given, std::move(split.command), context), given);
}

}  // namespace ddl::cli
