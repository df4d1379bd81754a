// Draws pages of what is over: of a job, from its record, and of a timeline.
#include <unistd.h>

#include <filesystem>

#include "base/text.h"
#include "cli/commands/commands.h"
#include "cli/reports/report_files.h"
#include "contract/ddlrun.h"
#include "report/page.h"
#include "report/timeline_view.h"
#include "timeline/gzip_file.h"

namespace ddl::cli {

int draw_report(const Request& request, const Environment& /*environment*/, const Console& console) {
  const ReportTask& task = request.report;
  if (task.page.empty()) return console.print(report::page(*task.record, task.baseline.get()));
  auto files = ReportFiles::plan(request);
  if (!files) return console.refuse(files.error());
  const Status written = files->write(*task.record);
  return written ? contract::kSuccess : console.refuse(written.error(), contract::kOutputLost);
}

namespace {

Result<std::string> page_of_timeline(const std::string& path) {
  DDL_ASSIGN(file, timeline::GzipFile::open(path));
  DDL_ASSIGN(timeline, report::read_timeline([&](std::span<char> buffer) { return file->read(buffer); }));
  return report::timeline_view(timeline, std::filesystem::path(path).filename().string());
}

}  // namespace

int view_timeline(const Request& request, const Environment& /*environment*/, const Console& console) {
  const std::string& target = request.report.page;
  // It has megabytes.
  if (target.empty() && ::isatty(STDOUT_FILENO) == 1)
    return console.refuse(Error(ErrorCode::kInvalidArgument,
                                "--timeline-view: the page is not for a terminal",
                                "add > view.html, or --report view.html, and open that in a browser"));
  auto files = ReportFiles::plan(request);
  if (!files) return console.refuse(files.error());
  auto page = page_of_timeline(request.timeline_file);
  if (!page) {
    Error error = std::move(page.error()).during("--timeline-view: " + shell_quote(request.timeline_file));
    if (error.hint().empty())
      error = error.with_hint("give a file that --timeline-filename or ddl_timeline_start has written");
    return console.refuse(error);
  }
  if (target.empty()) return console.print(*page);
  const Status written = files->write_page(*page);
  return written ? contract::kSuccess : console.refuse(written.error(), contract::kOutputLost);
}

}  // namespace ddl::cli
