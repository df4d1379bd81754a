// Draws the page of a job again from its record.
#include "cli/commands/commands.h"
#include "report/page.h"
#include "timeline/draft_file.h"

namespace ddl::cli {
namespace {

Status write_page(const std::string& path, const std::string& page) {
  DDL_ASSIGN(file, timeline::DraftFile::plan(path));
  DDL_TRY(file->open());
  DDL_TRY(file->write(page));
  return file->finish();
}

}  // namespace

int draw_report(const Request& request, const Environment& /*environment*/, const Console& console) {
  const ReportTask& task = request.report;
  const std::string page = report::page(*task.record, task.baseline.get());
  if (task.page.empty()) return console.print(page);
  if (const Status written = write_page(task.page, page); !written)
    return console.refuse(written.error(), contract::kOutputLost);
  return contract::kSuccess;
}

}  // namespace ddl::cli
