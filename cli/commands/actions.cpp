// The actions of ddlrun, one row for each option that chooses one.
#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "base/text.h"
#include "cli/commands/commands.h"
#include "cli/options/command_mistakes.h"
#include "cli/options/given_options.h"
#include "cli/options/option_table.h"
#include "cli/options/other_launchers.h"
#include "cli/options/readers.h"
#include "cli/options/typing_mistakes.h"

namespace ddl::cli {

namespace {

using enum OptionId;

/// An option that chooses an action. Those of the same action may be combined.
struct ActionOption {
  OptionId option;
  Action action;
  /// Whether an option has an effect, beside those that every action has.
  bool (*uses)(const OptionEntry& entry);
  ReadOptions* read;
  Command* command;
  /// What to do about words in the place of a command; the word follows a "=" or blank. "": the reader takes them.
  std::string_view without_words = "";
};

bool any(const OptionEntry& /*entry*/) { return true; }

template <OptionId... ids>
bool only(const OptionEntry& entry) {
  return ((entry.id == ids) || ...);
}

/// read_binding_view() has a sentence for the last five.
bool of_binding_view(const OptionEntry& entry) {
  return entry.group == OptionGroup::kBinding ||
         only<kNumProc, kRanksPerNode, kMapBy, kRankBy, kOversubscribe, kJson, kRankfile, kProbe, kDryRun,
              kHosts, kHostfile>(entry);
}

bool of_hosts(const OptionEntry& entry) {
  return entry.group != OptionGroup::kRanks && entry.group != OptionGroup::kBinding &&
         entry.group != OptionGroup::kInputOutput;
}

/// On other hosts a rank runs the check. -np is accepted, as horovodrun does, with a note.
bool of_check_build(const OptionEntry& entry) {
  return of_hosts(entry) || only<kExport, kWorkdir, kNumProc>(entry);
}

int print_text(const Request& request, const Environment& /*environment*/, const Console& console) {
  return console.print(request.text);
}

constexpr char kOmit[] = "omit it; options come before any other word";

/// An earlier one takes precedence, where a configuration file has another. The last needs no option.
constexpr ActionOption kActions[] = {
    {kHelp, Action::kHelp, any, read_help, print_text},
    {kVersion, Action::kVersion, any, read_version, print_text},
    {kCompletion, Action::kCompletion, only<kCompletion>, read_completion, print_text, kOmit},
    {kCheckCapability, Action::kCheckBuild, of_check_build, read_check_build, check_build, kOmit},
    {kCheckBuild, Action::kCheckBuild, of_check_build, read_check_build, check_build,
     "to check one capability: --check-build="},
    {kCheckHosts, Action::kCheckHosts, of_hosts, read_job_here, check_hosts, kOmit},
    {kInspect, Action::kInspect, only<kInspect, kWatch, kJson>, read_inspection, inspect,
     "name one job: --inspect JOB; other options come before or after it"},
    {kTimeline, Action::kTimeline, only<kTimeline, kTimelineFile>, read_timeline, change_timeline},
    {kMetrics, Action::kMetrics, only<kMetrics, kOpenMetrics, kMetricsDetail>, read_metrics, print_metrics,
     "name one job: --metrics JOB; other options come before or after it"},
    {kReportFrom, Action::kReport, only<kReportFrom, kReport, kBaseline>, read_report, draw_report, kOmit},
    {kTimelineView, Action::kTimelineView, only<kTimelineView, kReport>, read_timeline_view, view_timeline,
     kOmit},
    {kLint, Action::kLint, only<kLint, kSite, kJson>, read_lint, lint_script_file,
     "check one script at a time: --lint "},
    {kListSites, Action::kListSites, only<kListSites, kJson>, [](auto&, auto&) { return Status(); },
     list_sites, kOmit},
    {kShowSite, Action::kShowSite, only<kShowSite>, read_lint, print_text, kOmit},
    {kExplain, Action::kExplainSite, only<kExplain, kSite, kJson>, read_lint, explain_site, kOmit},
    {kShowBind, Action::kShowBind, of_binding_view, read_binding_view, show_bind, kOmit},
    {kExplainBind, Action::kShowBind, of_binding_view, read_binding_view, show_bind, kOmit},
    {kShowTopology, Action::kShowBind, of_binding_view, read_binding_view, show_bind, kOmit},
    {kSlurm, Action::kScript, any, read_script, write_script},
    {kDryRun, Action::kDryRun, any, read_job_here, cli::run},
    {kNumProc, Action::kRun, any, read_job_here, cli::run},
};

const ActionOption& chosen_by(const GivenOptions& given) {
  return *std::find_if(std::begin(kActions), std::end(kActions) - 1,
                       [&given](const ActionOption& one) { return given.has(one.option); });
}

/// Refuses two different actions, because one of them would be ignored silently.
Status refuse_two_actions(const GivenOptions& given) {
  const ActionOption& first = chosen_by(given);
  for (const ActionOption& other : kActions) {
    if (!given.has(other.option) || other.action == first.action || other.action == Action::kRun) continue;
    // The readers of these actions refuse --dry-run with a more exact message.
    if (other.action == Action::kDryRun &&
        (first.action == Action::kScript || first.action == Action::kShowBind))
      continue;
    return refuse(display_name(entry_of(first.option)) + " and " + display_name(entry_of(other.option)) +
                      " contradict each other",
                  "omit one of them");
  }
  return {};
}

/// Refuses words in the place of a command after an action that starts no command.
Status refuse_words(const ActionOption& action, const GivenOptions& given,
                    const std::vector<std::string>& words) {
  if (action.without_words.empty() || words.empty()) return {};
  const std::string word = shell_quote(words.front());
  std::string hint(action.without_words);
  if (hint.ends_with('=') || hint.ends_with(' ')) hint += word;
  return refuse(given.typed_name(action.option) + " starts no command, but " + word + " follows the options",
                std::move(hint));
}

/// Refuses options that the action would ignore silently. A configuration file may contain them for other calls.
Status refuse_unused(const ActionOption& action, const GivenOptions& given) {
  for (const OptionEntry& entry : option_table()) {
    if (only<kVerbose, kQuiet, kConfigFile>(entry) || action.uses(entry) || !given.is_typed(entry.id))
      continue;
    return refuse(given.typed_name(action.option) + " does not use " + display_name(entry),
                  action.action == Action::kShowBind && only<kScriptFile, kOutput>(entry)
                      ? "what it prints goes to a file by > FILE"
                      : "omit it");
  }
  return {};
}

tl::unexpected<Error> refuse_config(std::string message) {
  return refuse(std::move(message), usage_line(entry_of(kConfigFile)));
}

/// Adds the options of --config-file. Options of the command line win.
Result<GivenOptions> with_config(GivenOptions given, const CommandLineContext& context) {
  if (!given.has(kConfigFile)) return given;
  const auto& names = given[kConfigFile];
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

std::vector<std::string> notes_of(const ActionOption& action, const GivenOptions& given) {
  std::vector<std::string> notes;
  if (action.action == Action::kCheckBuild && given.is_typed(kNumProc))
    notes.push_back(given.typed_name(kNumProc) + " changes nothing: " + given.typed_name(action.option) +
                    " starts no ranks");
  for (const OptionWithoutEffect& one : given.without_effect) {
    notes.push_back((one.where.empty() ? "" : one.where + ": ") + one.name +
                    " changes nothing: " + std::string(one.entry->help));
  }
  return notes;
}

bool starts_a_command(const ActionOption& action) {
  return action.action == Action::kRun || action.action == Action::kDryRun ||
         action.action == Action::kScript;
}

/// --help and --version are obeyed whatever else is given.
bool is_obeyed_first(const ActionOption& action) {
  return action.action == Action::kHelp || action.action == Action::kVersion;
}

}  // namespace

Result<Request> parse_command_line(std::span<const std::string> words, const CommandLineContext& context) {
  const SplitArgv split = split_argv(words);
  DDL_ASSIGN(given, collect_options(split));
  if (!is_obeyed_first(chosen_by(given))) {
    DDL_TRY(refuse_mistyped_value(given));
    DDL_TRY(refuse_command(split, given));
    DDL_TRY(refuse_unexpanded(given));
    DDL_TRY(refuse_two_actions(given));
    DDL_ASSIGN(completed, with_config(std::move(given), context));
    given = std::move(completed);
  }
  const ActionOption& action = chosen_by(given);
  Request request;
  request.action = action.action;
  if (!is_obeyed_first(action)) {
    DDL_TRY(refuse_unexpanded(given));
    if (action.action != Action::kInspect && given.is_typed(kWatch))
      return refuse("--watch belongs to --inspect, which shows a running job", "add --inspect, or omit it");
    DDL_TRY(refuse_words(action, given, split.command));
    if (starts_a_command(action)) DDL_TRY(refuse_launcher(split, given));
    request.notes = notes_of(action, given);
    request.json = given.has(kJson);
    request.job.verbose = given.has(kVerbose);
    request.job.quiet = given.has(kQuiet);
  }
  DDL_TRY(action.read(request, {given, split, context}));
  DDL_TRY(refuse_unused(action, given));
  return request;
}

int run_action(Request request, const Environment& environment, const Console& console) {
  if (!request.job.quiet) {
    for (const std::string& note : request.notes) console.note(note);
  }
  if (const Status found = find_site(request, site_catalog(environment), requested_nodes(request)); !found)
    return console.refuse(Error(found.error()).with_hint(kSitesHint));
  const auto* action = std::find_if(std::begin(kActions), std::end(kActions),
                                    [&](const ActionOption& one) { return one.action == request.action; });
  return action->command(request, environment, console);
}

}  // namespace ddl::cli
