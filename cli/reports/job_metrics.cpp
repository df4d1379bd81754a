#include "cli/reports/job_metrics.h"

#include <fcntl.h>
#include <pwd.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/fd.h"
#include "base/text.h"
#include "report/metrics.h"
#include "timeline/draft_file.h"

namespace ddl::cli {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kMetrics = ".prom", kTargets = ".json";

/// "ddlrun-node1-4711-0f3c9a1b.prom". job_id: "ddlrun-4711-0f3c9a1b".
std::string file_of_job(const std::string& folder, const std::string& hostname, const std::string& job_id,
                        std::string_view suffix) {
  constexpr std::string_view kStart = "ddlrun-";
  return folder + "/" + std::string(kStart) + hostname + "-" + job_id.substr(kStart.size()) +
         std::string(suffix);
}

/// "x.prom.4711.new", the draft of x.prom, to "x.prom".
std::string without_draft(std::string name) {
  constexpr std::string_view kDraft = ".new";
  if (!name.ends_with(kDraft)) return name;
  name.resize(name.size() - kDraft.size());
  const std::size_t dot = name.rfind('.');
  return dot == std::string::npos ? name : name.substr(0, dot);
}

/// The pid in such a name, of a job of this host: another host's name may begin in the same way.
std::optional<pid_t> pid_in(const std::string& file, const std::string& hostname, std::string_view suffix) {
  const std::string name = without_draft(file);
  const std::string start = "ddlrun-" + hostname + "-";
  if (!name.starts_with(start) || !name.ends_with(suffix)) return std::nullopt;
  const std::string_view rest =
      std::string_view(name).substr(start.size(), name.size() - start.size() - suffix.size());
  const std::size_t dash = rest.find('-');
  if (dash == std::string_view::npos ||
      rest.substr(dash + 1).find_first_not_of("0123456789abcdef") != std::string_view::npos)
    return std::nullopt;
  const auto pid = parse_integer(rest.substr(0, dash));
  if (!pid || *pid <= 0 || !std::in_range<pid_t>(*pid)) return std::nullopt;
  return static_cast<pid_t>(*pid);
}

/// Whether this file of such a name is of a process that has ended.
bool is_left_behind(const fs::directory_entry& file, const std::string& hostname, std::string_view suffix) {
  const auto pid = pid_in(file.path().filename(), hostname, suffix);
  struct stat status {};
  return pid && ::lstat(file.path().c_str(), &status) == 0 && S_ISREG(status.st_mode) &&
         status.st_uid == ::geteuid() && ::kill(*pid, 0) != 0 && errno == ESRCH;
}

/// Of files of jobs, of which those that were left behind are removed.
Status use_folder(const std::string& folder, const std::string& hostname, std::string_view suffix,
                  const std::string& option) {
  std::error_code error;
  for (const fs::directory_entry& file : fs::directory_iterator(folder, error)) {
    std::error_code ignored;
    if (is_left_behind(file, hostname, suffix)) fs::remove(file.path(), ignored);
  }
  // A folder that users may write to need not be one that they may list.
  if (::access(folder.c_str(), W_OK | X_OK) == 0 && fs::is_directory(folder, error)) return {};
  return refuse(fs::exists(folder, error) ? "the folder " + shell_quote(folder) + " may not be written to"
                                          : "there is no folder " + shell_quote(folder),
                "give another one with " + option);
}

Result<uid_t> user_of_name(const std::string& name) {
  const bool is_number = name.find_first_not_of("0123456789") == std::string::npos;
  const auto number = is_number ? parse_integer(name) : std::nullopt;
  if (number && std::in_range<uid_t>(*number) && static_cast<uid_t>(*number) != static_cast<uid_t>(-1))
    return static_cast<uid_t>(*number);
  std::array<char, 16384> buffer;
  passwd entry{};
  passwd* found = nullptr;
  ::getpwnam_r(name.c_str(), &entry, buffer.data(), buffer.size(), &found);
  if (found == nullptr)
    return refuse("--metrics-users: this host has no user " + shell_quote(name),
                  "give names or numbers of users, as in prometheus,4711");
  return entry.pw_uid;
}

/// The line in a file that nobody else may read.
Result<std::string> read_token(const std::string& path) {
  constexpr std::size_t kMost = 4096, kLeast = 16;
  const auto refuse_file = [&](const std::string& why) {
    return refuse("--metrics-token-file: " + shell_quote(path) + ": " + why,
                  "give another; to make one: (umask 077; openssl rand -hex 32 > FILE)");
  };
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  struct stat status {};
  if (!file || ::fstat(file.get(), &status) != 0) return refuse_file(std::generic_category().message(errno));
  if (!S_ISREG(status.st_mode)) return refuse_file("it is not a regular file");
  if (status.st_uid != ::geteuid() && status.st_uid != 0) return refuse_file("it belongs to another user");
  if ((status.st_mode & (S_IRWXG | S_IRWXO)) != 0)
    return refuse_file("others may read or change it; its mode must be 0600");
  std::string text(kMost, '\0');
  const ssize_t size = retry_eintr([&] { return ::read(file.get(), text.data(), text.size()); });
  if (size < 0) return refuse_file(std::generic_category().message(errno));
  text.resize(static_cast<std::size_t>(size));
  std::string token(trim(text));
  const auto is_in_header = [](char c) { return c > ' ' && c <= '~'; };
  if (token.size() < kLeast || text.size() == kMost || !std::all_of(token.begin(), token.end(), is_in_header))
    return refuse_file("it is not one word of at least 16 characters");
  return token;
}

/// Prometheus's discovery by files. hostname: for an address that stands for all.
std::string targets_json(const net::SocketAddress& address, const std::string& hostname) {
  const std::string host = address.host_text();
  const bool is_any = host == "0.0.0.0" || host == "::";
  const std::string target = is_any ? hostname + ":" + std::to_string(address.port()) : address.to_text();
  const nlohmann::json targets = {{{"targets", {target}}, {"labels", nlohmann::json::object()}}};
  return targets.dump() + "\n";
}

launcher::HttpAnswer answer_of(const launcher::JobInspection& job, report::MetricsDetail detail,
                               const std::string& accept) {
  if (accept.find("application/openmetrics-text") == std::string::npos)
    return {200, report::metrics_text(job, report::MetricsFormat::kPrometheus, detail),
            "text/plain; version=0.0.4; charset=utf-8"};
  return {200, report::metrics_text(job, report::MetricsFormat::kOpenMetrics, detail),
          "application/openmetrics-text; version=1.0.0; charset=utf-8"};
}

/// While it lives, all users may read the files that this process makes.
class ReadableForAll {
 public:
  ReadableForAll() : before_(::umask(S_IWGRP | S_IWOTH)) {}
  ~ReadableForAll() { ::umask(before_); }
  ReadableForAll(const ReadableForAll&) = delete;
  ReadableForAll& operator=(const ReadableForAll&) = delete;

 private:
  mode_t before_;
};

/// Programs of other users are to read it.
Status write_whole(const std::string& path, const std::string& text) {
  const ReadableForAll readable;
  DDL_ASSIGN(file, timeline::DraftFile::plan(path));
  DDL_TRY(file->open());
  DDL_TRY(file->write(text));
  return file->finish();
}

double now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace

struct JobMetrics::State {
  MetricsTask task;
  std::string hostname;
  bool is_folder = false;  ///< MetricsTask::file
  launcher::HttpAccess access;
  std::string file;       ///< written so far; "": none
  std::string discovery;  ///< the same
  UniqueFd history;
  off_t history_bytes = 0;  ///< of whole sets of samples
  std::string history_error;
  bool is_failure_told = false;
  std::function<void(const std::string&)> note;    ///< as Notices::note
  std::function<void(const std::string&)> detail;  ///< as Notices::detail

  State() = default;
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() { end(); }

  Status plan_files() {
    if (!task.discovery.empty())
      DDL_TRY(use_folder(task.discovery, hostname, kTargets, "--metrics-discovery"));
    std::error_code ignored;
    is_folder = !task.file.empty() && fs::is_directory(task.file, ignored);
    if (is_folder) {
      DDL_TRY(use_folder(task.file, hostname, kMetrics, "--metrics-file"));
    } else if (!task.file.empty()) {
      if (!task.file.ends_with(kMetrics))
        return refuse(
            shell_quote(task.file) + " is neither a folder, nor a file with a name that ends with .prom",
            "the collectors of Prometheus read only such names");
      const auto draft = timeline::DraftFile::plan(task.file);
      if (!draft)
        return fail(draft.error().with_hint("create the folder of the metrics first, or give another file"));
    }
    if (task.history.empty()) return {};
    history.reset(
        ::open(task.history.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_NONBLOCK | O_CLOEXEC, 0666));
    struct stat status {};
    const bool is_open = history && ::fstat(history.get(), &status) == 0;
    if (is_open && S_ISREG(status.st_mode)) return {};
    return refuse("the history of metrics cannot be written to " + shell_quote(task.history) + ": " +
                      (is_open ? "it is not a regular file" : std::generic_category().message(errno)),
                  "give another file with --metrics-history");
  }

  Status plan_access() {
    access.address = *task.listens;
    for (const std::string& name : task.users) {
      DDL_ASSIGN(user, user_of_name(name));
      access.users.push_back(user);
    }
    if (task.token_file.empty()) return {};
    ::prctl(PR_SET_DUMPABLE, 0);  // as for the job's key: no core dump, no debugger
    DDL_ASSIGN(token, read_token(task.token_file));
    access.token = std::move(token);
    return {};
  }

  void write(const launcher::JobInspection& job) {
    if (!task.file.empty()) {
      const std::string path = is_folder ? file_of_job(task.file, hostname, job.job.id, kMetrics) : task.file;
      const std::string text = report::metrics_text(job, report::MetricsFormat::kPrometheus, task.detail);
      const Status written = write_whole(path, text);
      if (written) {
        std::error_code ignored;
        replace(file, fs::canonical(path, ignored));  // what a link leads to
      } else if (!std::exchange(is_failure_told, true)) {
        note("the metrics are not in " + shell_quote(path) + " now: " + written.error().message());
      }
    }
    if (!history) return;
    std::string text = report::metrics_text(job, report::MetricsFormat::kOpenMetrics, task.detail, now());
    text.resize(text.size() - std::string_view("# EOF\n").size());
    append(text);
  }

  /// The generations of a job that is started again have files of different names.
  static void replace(std::string& path, std::string now) {
    if (!path.empty() && path != now) ::unlink(path.c_str());
    path = std::move(now);
  }

  /// At an error the history ends with what it has, if that is possible, and the job goes on.
  void append(std::string_view text) {
    constexpr std::string_view kEnd = "# EOF\n";
    const Status written = write_all(history.get(), text.data(), text.size());
    if (written) {
      history_bytes += static_cast<off_t>(text.size());
      return;
    }
    if (::ftruncate(history.get(), history_bytes) == 0)
      (void)write_all(history.get(), kEnd.data(), kEnd.size());
    history.reset();
    history_error = task.history + ": " + written.error().message();
    if (note) note("the history of metrics ends here: " + history_error);
  }

  void tell_address(const std::string& job_id, const net::SocketAddress& address) {
    // Nobody else would say which port it is.
    const bool is_news = task.listens->port() == 0 && task.discovery.empty();
    (is_news ? note : detail)("metrics: http://" + address.to_text() + "/metrics");
    if (task.discovery.empty()) return;
    discovery = file_of_job(task.discovery, hostname, job_id, kTargets);
    const Status written = write_whole(discovery, targets_json(address, hostname));
    if (!written) note("Prometheus is not told of the job: " + written.error().message());
  }
  void forget_address() {
    if (!discovery.empty()) ::unlink(std::exchange(discovery, "").c_str());
  }
  void end() {
    for (std::string* const one : {&file, &discovery})
      if (!one->empty()) ::unlink(std::exchange(*one, "").c_str());
    if (history) append("# EOF\n");
    history.reset();
  }
};

Result<JobMetrics> JobMetrics::plan(const MetricsTask& task, const std::string& hostname) {
  auto state = std::make_shared<State>();
  state->task = task;
  state->hostname = hostname;
  DDL_TRY(state->plan_files());
  if (task.listens) DDL_TRY(state->plan_access());
  return JobMetrics(std::move(state));
}

Status JobMetrics::end() {
  state_->end();
  return state_->history_error.empty() ? Status() : fail(ErrorCode::kSystem, state_->history_error);
}

void JobMetrics::measure(launcher::Notices& notices) {
  const MetricsTask& task = state_->task;
  launcher::MetricsExport& exported = notices.metrics;
  state_->note = notices.note;
  state_->detail = notices.detail;
  if (!task.file.empty() || !task.history.empty()) {
    exported.interval_seconds = task.interval_seconds;
    exported.on_sample = [state = state_](const launcher::JobInspection& job) { state->write(job); };
  }
  if (!task.listens) return;
  exported.access = state_->access;
  exported.answer = [detail = task.detail](const launcher::JobInspection& job, const std::string& accept) {
    return answer_of(job, detail, accept);
  };
  exported.opened = [state = state_](const std::string& job_id, const net::SocketAddress& address) {
    state->tell_address(job_id, address);
  };
  exported.closed = [state = state_] { state->forget_address(); };
}

}  // namespace ddl::cli
