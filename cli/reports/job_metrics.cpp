#include "cli/reports/metrics_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <system_error>

#include "base/fd.h"
#include "base/text.h"
#include "report/metrics.h"
#include "timeline/draft_file.h"

namespace ddl::cli {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kSuffix = ".prom";

/// "ddlrun-node1-4711-0f3c9a1b.prom". job_id: "ddlrun-4711-0f3c9a1b".
std::string name_of(const std::string& hostname, const std::string& job_id) {
  constexpr std::string_view kStart = "ddlrun-";
  return std::string(kStart) + hostname + "-" + job_id.substr(kStart.size()) + std::string(kSuffix);
}

/// Whether this file of such a name is of a process that has ended.
bool is_left_behind(const fs::directory_entry& file, const std::string& hostname) {
  const std::string start = "ddlrun-" + hostname + "-", name = file.path().filename();
  if (!name.starts_with(start) || !name.ends_with(kSuffix)) return false;
  const std::string_view rest = std::string_view(name).substr(start.size());
  const auto pid = parse_integer(rest.substr(0, rest.find('-')));
  struct stat status {};
  return pid && *pid > 0 && ::lstat(file.path().c_str(), &status) == 0 && S_ISREG(status.st_mode) &&
         status.st_uid == ::geteuid() && ::kill(static_cast<pid_t>(*pid), 0) != 0 && errno == ESRCH;
}

void remove_left_behind(const std::string& folder, const std::string& hostname) {
  std::error_code ignored;
  for (const fs::directory_entry& file : fs::directory_iterator(folder, ignored))
    if (is_left_behind(file, hostname)) fs::remove(file.path(), ignored);
}

Status write_whole(const std::string& path, const std::string& text) {
  DDL_ASSIGN(file, timeline::DraftFile::plan(path));
  DDL_TRY(file->open());
  DDL_TRY(file->write(text));
  return file->finish();
}

double now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace

struct MetricsFiles::State {
  MetricsTask task;
  std::string hostname;
  bool is_folder = false;
  std::string file;  ///< written so far; "": none
  UniqueFd history;
  std::function<void(const std::string&)> note;

  State() = default;
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() {
    if (!file.empty()) ::unlink(file.c_str());
    if (history) append("# EOF\n");
  }

  void write(const launcher::JobInspection& job) {
    if (!task.file.empty()) {
      file = is_folder ? task.file + "/" + name_of(hostname, job.job.id) : task.file;
      const std::string text = report::metrics_text(job, report::MetricsFormat::kPrometheus, task.detail);
      if (const Status written = write_whole(file, text); !written) give_up(task.file, written.error());
    }
    if (!history) return;
    std::string text = report::metrics_text(job, report::MetricsFormat::kOpenMetrics, task.detail, now());
    text.resize(text.size() - std::string_view("# EOF\n").size());
    append(text);
  }

  void append(std::string_view text) {
    if (const Status written = write_all(history.get(), text.data(), text.size()); !written) {
      history.reset();
      give_up(task.history, written.error());
    }
  }

  /// Said once: the job is more important.
  void give_up(std::string& path, const Error& error) {
    if (note) note("the metrics are not written any more: " + error.message());
    path.clear();
  }
};

Result<MetricsFiles> MetricsFiles::plan(const MetricsTask& task, const std::string& hostname) {
  auto state = std::make_shared<State>();
  state->task = task;
  state->hostname = hostname;
  std::error_code ignored;
  state->is_folder = !task.file.empty() && fs::is_directory(task.file, ignored);
  if (state->is_folder) {
    remove_left_behind(task.file, hostname);
    if (::access(task.file.c_str(), W_OK | X_OK) != 0)
      return refuse("the folder " + shell_quote(task.file) + " may not be written to",
                    "give another one with --metrics-file");
  } else if (!task.file.empty()) {
    if (!task.file.ends_with(kSuffix))
      return refuse(
          shell_quote(task.file) + " is neither a folder, nor a file with a name that ends with .prom",
          "the collectors of Prometheus read only such names");
    const auto draft = timeline::DraftFile::plan(task.file);
    if (!draft)
      return fail(draft.error().with_hint("create the folder of the metrics first, or give another file"));
  }
  if (task.history.empty()) return MetricsFiles(std::move(state));
  state->history.reset(::open(task.history.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  if (!state->history)
    return refuse("the history of metrics cannot be written to " + shell_quote(task.history) + ": " +
                      std::generic_category().message(errno),
                  "give another file with --metrics-history");
  return MetricsFiles(std::move(state));
}

void MetricsFiles::measure(launcher::Notices& notices) {
  if (!state_->task.is_wanted()) return;
  state_->note = notices.note;
  notices.measure_seconds = state_->task.interval_seconds;
  notices.measured = [state = state_](const launcher::JobInspection& job) { state->write(job); };
}

}  // namespace ddl::cli
