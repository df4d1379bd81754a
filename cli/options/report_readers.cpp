// Reads the options of actions that start no ranks and have few of them.
#include "base/text.h"
#include "cli/options/help_pages.h"
#include "cli/options/option_values.h"
#include "cli/options/readers.h"
#include "cli/options/shell_completion.h"
#include "launcher/scheduler/scheduler.h"

namespace ddl::cli {

Status read_check_build(Request& request, const CommandLine& line) {
  const GivenOptions& given = line.given;
  DDL_TRY(refuse_script_options(given));
  const auto& keys = given[OptionId::kCheckCapability];
  if (!keys.empty()) {
    const std::string name = given.typed_name(OptionId::kCheckCapability);
    if (keys.size() > 1)
      return refuse(name + " was given two names: " + keys[0].text + ", " + keys[1].text, "give one");
    request.capability = keys.front().text;
    // --check-build=$NAME with an unset NAME must not check everything and exit with 0.
    if (request.capability.empty())
      return refuse(name + ": the name is empty", "name a capability, or omit the '='");
  }
  const auto& launchers = given[OptionId::kLauncher];
  const bool is_local = !launchers.empty() && launchers.back().text == "local";
  const bool has_hosts = given.has(OptionId::kHosts) || given.has(OptionId::kHostfile) ||
                         !launcher::job_id_here(line.context.environment).empty();
  return has_hosts && !is_local ? read_job(request, line) : Status();
}

Status read_inspection(Request& request, const CommandLine& line) {
  ValueReader values(line.given);
  values.take(
      OptionId::kInspect, [](const std::string& text) { return Result<std::string>(text); },
      request.inspect.job);
  request.inspect.watches = line.given.has(OptionId::kWatch);
  return values.status();
}

Status read_metrics(Request& request, const CommandLine& line) {
  ValueReader values(line.given);
  values.take(
      OptionId::kMetrics, [](const std::string& text) { return Result<std::string>(text); },
      request.inspect.job);
  values.take(OptionId::kMetricsDetail, parse_metrics_detail, request.metrics.detail);
  if (line.given.has(OptionId::kOpenMetrics)) request.metrics.format = report::MetricsFormat::kOpenMetrics;
  return values.status();
}

Status read_timeline(Request& request, const CommandLine& line) {
  if (line.split.command.size() > 1)
    return refuse(line.given.typed_name(OptionId::kTimeline) + " starts no command, but " +
                      shell_quote(line.split.command[1]) + " follows the options",
                  "name one job, after all options: ddlrun --timeline start JOB");
  ValueReader values(line.given);
  const auto starts = [](const std::string& text) -> Result<bool> {
    if (text == "start" || text == "stop") return text == "start";
    return refuse("\"" + text + "\" is neither start nor stop");
  };
  values.take(OptionId::kTimeline, starts, request.timeline.starts);
  values.take(OptionId::kTimelineFile, parse_file, request.timeline.file, line.context.current_directory);
  DDL_TRY(values.status());
  if (!request.timeline.starts && line.given.is_typed(OptionId::kTimelineFile))
    return refuse("--timeline-filename belongs to --timeline start", "omit it");
  if (line.split.command.empty()) return {};
  request.inspect.job = line.split.command.front();
  if (request.inspect.job.empty())
    return refuse("the name of the job is empty", "name one, or omit it if you have one job");
  return {};
}

namespace {

/// The record in the file that the option names, read by parse; null if it was not given.
template <class Record>
Result<std::shared_ptr<const Record>> read_record(const CommandLine& line, OptionId option,
                                                  Result<Record> (*parse)(std::string_view json)) {
  std::string path;
  ValueReader values(line.given);
  values.take(option, parse_file, path, line.context.current_directory);
  DDL_TRY(values.status());
  if (path.empty()) return nullptr;
  const std::string name = line.given.typed_name(option);
  constexpr char kHint[] = "give a file that ddlrun --report-json has written";
  auto text = line.context.read_file(path);
  if (!text) return refuse(name + ": " + text.error().message(), kHint);
  auto record = parse(*text);
  if (!record) return refuse(name + ": " + path + ": " + record.error().message(), kHint);
  return std::make_shared<const Record>(*std::move(record));
}

void read_metrics_port(ValueReader& values, const std::string& here, MetricsTask& metrics) {
  values.take(OptionId::kMetricsListen, parse_listen_address, metrics.listens);
  values.take(OptionId::kMetricsUsers, parse_user_names, metrics.users);
  values.take(OptionId::kMetricsTokenFile, parse_file, metrics.token_file, here);
  values.take(OptionId::kMetricsDiscovery, parse_directory, metrics.discovery, here);
  if (!metrics.listens)
    return values.refuse_given(
        {OptionId::kMetricsUsers, OptionId::kMetricsTokenFile, OptionId::kMetricsDiscovery},
        " is about the port of --metrics-listen", "give it, too: --metrics-listen 0 takes a free port");
  if (!metrics.listens->is_loopback() && metrics.token_file.empty())
    values.refuse_once(OptionId::kMetricsListen,
                       "--metrics-listen " + metrics.listens->to_text() +
                           ": other hosts can reach this address, so it needs --metrics-token-file",
                       "give a file with a token, or only the port, for 127.0.0.1");
}

}  // namespace

void read_metrics_of_job(ValueReader& values, const std::string& here, MetricsTask& metrics) {
  values.take(OptionId::kMetricsFile, parse_file, metrics.file, here);
  values.take(OptionId::kMetricsHistory, parse_file, metrics.history, here);
  values.take(OptionId::kMetricsInterval, parse_metrics_interval, metrics.interval_seconds);
  values.take(OptionId::kMetricsDetail, parse_metrics_detail, metrics.detail);
  read_metrics_port(values, here, metrics);
  values.refuse_given({OptionId::kOpenMetrics}, " belongs to --metrics, which shows a running job",
                      "omit it: --metrics-history is in this format");
}

Status read_report_files(Request& request, const CommandLine& line) {
  const std::string& here = line.context.current_directory;
  ReportTask& task = request.report;
  ValueReader values(line.given);
  values.take(OptionId::kReport, parse_file, task.page, here);
  values.take(OptionId::kReportJson, parse_file, task.json, here);
  values.take(OptionId::kReportDir, parse_directory, task.directory, here);
  read_metrics_of_job(values, here, request.metrics);
  DDL_TRY(values.status());
  request.job.measures_use = task.is_wanted() || request.metrics.is_wanted();
  DDL_ASSIGN(baseline, read_record(line, OptionId::kBaseline, report::parse_job_record));
  task.baseline = std::move(baseline);
  return {};
}

Status read_report(Request& request, const CommandLine& line) {
  DDL_TRY(read_report_files(request, line));
  DDL_ASSIGN(record, read_record(line, OptionId::kReportFrom, report::parse_record));
  if (record && std::holds_alternative<report::ScalingStudy>(*record) && request.report.baseline)
    return refuse("--baseline compares one run, and the file of --report-from has several",
                  "omit --baseline");
  request.report.record = std::move(record);
  return {};
}

Status read_timeline_view(Request& request, const CommandLine& line) {
  const std::string& here = line.context.current_directory;
  ValueReader values(line.given);
  values.take(OptionId::kTimelineView, parse_file, request.timeline_file, here);
  values.take(OptionId::kReport, parse_file, request.report.page, here);
  return values.status();
}

Status read_help(Request& request, const CommandLine& line) {
  std::string topic;
  for (const GivenValue& value : line.given[OptionId::kHelp]) {
    // "help: true" in a file names none.
    if (value.where.empty()) topic = value.text;
  }
  auto page = help_text(topic);
  if (!page) return fail(page.error().with_hint("ddlrun --help alone shows how to begin"));
  request.text = *std::move(page);
  return {};
}

Status read_version(Request& request, const CommandLine& line) {
  // mpirun's and srun's -v means --verbose. A job must not seem to have run because the version was printed.
  if (!line.split.command.empty() && line.given.typed_name(OptionId::kVersion) == "-v")
    return refuse("-v prints the version and starts nothing, but the command " +
                      shell_quote(line.split.command.front()) + " follows",
                  "write --verbose to see each step of the start, or --version alone");
  request.text = version_text();
  return {};
}

Status read_completion(Request& request, const CommandLine& line) {
  ValueReader values(line.given);
  Shell shell = Shell::kBash;
  values.take(OptionId::kCompletion, parse_shell, shell);
  DDL_TRY(values.status());
  request.text = completion_for(shell);
  return {};
}

}  // namespace ddl::cli
