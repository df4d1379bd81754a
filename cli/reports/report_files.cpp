#include "cli/reports/report_files.h"

#include <unistd.h>

#include <filesystem>
#include <system_error>

#include "base/text.h"
#include "cli/reports/job_report.h"
#include "contract/version.h"
#include "report/page.h"

namespace ddl::cli {

namespace fs = std::filesystem;

report::JobRecord record_of(const Request& request, const Environment& environment, double began,
                            launcher::JobReport report) {
  report::JobRecord record;
  record.version = contract::kVersion;
  record.name = request.job.name;
  record.command = request.job.command;
  record.workdir = request.job.workdir;
  record.num_ranks = request.job.num_ranks;
  record.began = began;
  if (const auto& job = request.allocation.job) record.scheduler_job = job->scheduler + " job " + job->id;
  for (const launcher::AllocatedNode& node : request.allocation.nodes) record.hosts.push_back(node.name);
  Environment all = environment;
  for (const launcher::EnvironmentExport& one : request.job.exports)
    if (one.value) all[one.name] = *one.value;
  record.environment = report::shown_variables(all);
  const std::string said = failure_report(report, request.job, TerminalStyle(false));
  for (const std::string_view line : split(trim(said), '\n'))
    if (!line.empty()) record.said.emplace_back(line);
  record.report = std::move(report);
  return record;
}

namespace {

/// The name of the files in --report-dir: the job's, and what tells its runs apart.
std::string name_of(const Request& request) {
  std::string name = request.job.name.empty() ? "job" : request.job.name;
  for (char& letter : name)
    if (letter == '/') letter = '_';
  const auto& job = request.allocation.job;
  return name + "-" + (job ? job->id : std::to_string(::getpid()));
}

Status add_file(std::vector<std::unique_ptr<timeline::DraftFile>>& files, const std::string& path) {
  auto file = timeline::DraftFile::plan(path);
  if (!file)
    return fail(file.error().with_hint("create the folder of the report first, or give another file"));
  files.push_back(*std::move(file));
  return {};
}

Status write_all(std::vector<std::unique_ptr<timeline::DraftFile>>& files, const std::string& text) {
  Status all;
  for (const auto& file : files) {
    Status written = file->open();
    if (written) written = file->write(text);
    if (written) written = file->finish();
    if (!written && all) all = std::move(written);
  }
  return all;
}

}  // namespace

Result<ReportFiles> ReportFiles::plan(const Request& request, const std::string& suffix) {
  const ReportTask& task = request.report;
  ReportFiles files;
  files.baseline_ = task.baseline;
  if (!task.page.empty()) DDL_TRY(add_file(files.pages_, task.page));
  if (!task.json.empty()) DDL_TRY(add_file(files.records_, task.json));
  if (task.directory.empty()) return files;
  std::error_code error;
  fs::create_directories(task.directory, error);
  if (error)
    return refuse("the folder " + shell_quote(task.directory) + " cannot be created: " + error.message(),
                  "give another one with --report-dir");
  const std::string path = task.directory + "/" + name_of(request) + suffix;
  DDL_TRY(add_file(files.pages_, path + ".html"));
  DDL_TRY(add_file(files.records_, path + ".json"));
  return files;
}

Status ReportFiles::write(const report::Record& record) {
  Status page = pages_.empty() ? Status() : write_page(report::page(record, baseline_.get()));
  Status json;
  if (!records_.empty()) json = write_all(records_, report::to_json(record));
  return page ? std::move(json) : std::move(page);
}

Status ReportFiles::write_page(const std::string& page) { return write_all(pages_, page); }

}  // namespace ddl::cli
