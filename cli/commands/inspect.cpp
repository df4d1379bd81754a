// --inspect: finds the running jobs of this host, asks one of them what its ranks do, and prints that, once or every
// two seconds. --metrics asks the same way what they have used.
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <ctime>
#include <utility>

#include "base/deadline.h"
#include "base/text.h"
#include "cli/commands/commands.h"
#include "cli/reports/inspect_report.h"
#include "contract/ddlrun.h"
#include "contract/version.h"
#include "launcher/control/job_client.h"
#include "launcher/control/job_socket.h"
#include "report/metrics.h"

namespace ddl::cli {

namespace {

using launcher::JobSocket;

constexpr int kNoSuchJob = 1;
/// A job answers within a second. If its head does not, an agent says so sooner than this.
constexpr auto kPatience = std::chrono::milliseconds(2500);
constexpr timespec kWatchPeriod{2, 0};
constexpr char kPlaces[] =
    "a job is seen on the host where its ddlrun was started, and on the hosts of its ranks";
constexpr char kList[] = "ddlrun --inspect without a name lists the jobs of this host";

std::int64_t head_pid(const JobSocket& socket) { return *launcher::head_pid_of(socket.job_id); }

bool is_own(const JobSocket& socket) { return socket.uid == static_cast<std::int64_t>(::getuid()); }

std::vector<FoundJob> describe(const std::vector<JobSocket>& sockets) {
  auto answers = launcher::ask_jobs(sockets, launcher::message::DescribeJob{contract::kVersion},
                                    Deadline::after(kPatience));
  std::vector<FoundJob> jobs;
  for (std::size_t i = 0; i < sockets.size(); ++i)
    jobs.push_back(
        {head_pid(sockets[i]), sockets[i].job_id, launcher::description_of(std::move(answers[i]))});
  return jobs;
}

std::string pids_text(const std::vector<JobSocket>& sockets) {
  std::vector<std::string> pids;
  for (const JobSocket& one : sockets) pids.push_back(std::to_string(head_pid(one)));
  return join(pids, ", ");
}

std::vector<JobSocket> those(std::vector<JobSocket> sockets, const auto& predicate) {
  std::erase_if(sockets, [&](const JobSocket& one) { return !predicate(one); });
  return sockets;
}

struct Match {
  std::vector<JobSocket> sockets;
  std::vector<FoundJob> unnamed;  ///< jobs that may have the name, but did not say it
};

/// The sockets with this pid or id, also of other users, whose refusal says more than that there is none. Otherwise
/// those with this name.
Match sockets_of(const std::string& job, const std::vector<JobSocket>& sockets) {
  const auto pid = parse_integer(job);
  auto named = those(
      sockets, [&](const JobSocket& one) { return one.job_id == job || (pid && head_pid(one) == *pid); });
  if (named.size() > 1) {
    auto own = those(named, is_own);
    if (!own.empty()) named = std::move(own);
  }
  if (!named.empty()) return {named, {}};
  const auto askable = those(sockets, [](const JobSocket& one) { return is_own(one) || ::getuid() == 0; });
  auto described = describe(askable);
  Match match;
  for (std::size_t i = 0; i < askable.size(); ++i) {
    const auto& description = described[i].description;
    if (description && description->name == job) match.sockets.push_back(askable[i]);
    if (!description && description.error().code() != ErrorCode::kClosed)
      match.unnamed.push_back(std::move(described[i]));
  }
  return match;
}

/// What is known, if no job has said that it has this name.
Error no_job_of_name(const std::string& job, const std::vector<FoundJob>& unnamed) {
  std::string message = "no running job " + shell_quote(job) + " is seen on this host";
  if (unnamed.empty()) return {ErrorCode::kUnavailable, message, kList};
  std::vector<std::string> pids;
  bool is_silent = false;
  for (const FoundJob& one : unnamed) {
    const Error& why = one.description.error();
    message += (pids.empty() ? ", but job " : ", and job ") + std::to_string(one.pid) +
               " does not say its name: " + why.message();
    pids.push_back(std::to_string(one.pid));
    is_silent |= why.code() == ErrorCode::kTimeout;
  }
  return {is_silent ? ErrorCode::kTimeout : ErrorCode::kUnavailable, message,
          "if it is the one, name it by the pid of its ddlrun: " + join(pids, ", ")};
}

Error no_own_job(const std::vector<JobSocket>& sockets) {
  // Root may look at all of them.
  if (::getuid() == 0 && !sockets.empty())
    return {ErrorCode::kUnavailable, "no job of root is seen on this host",
            "name one of another user: " + pids_text(sockets)};
  return {ErrorCode::kUnavailable, "no running job of yours is seen on this host", kPlaces};
}

/// There is no such job, or none that this user may look at; other errors are of a job that does not answer.
bool is_no_job(const Error& error) {
  return error.code() == ErrorCode::kClosed || error.code() == ErrorCode::kPermissionDenied ||
         error.code() == ErrorCode::kUnavailable;
}

/// How a job that was found did not answer.
Error unanswered(const JobSocket& socket, Error error) {
  const std::string pid = std::to_string(head_pid(socket));
  if (error.code() == ErrorCode::kClosed) return {error.code(), "job " + pid + " has just ended", kList};
  error.during("job " + pid);
  return is_no_job(error)
             ? error
             : error.with_hint("its ddlrun is process " + pid + ": see whether it runs, or try again");
}

int refuse_job(const Error& error, const Console& console) {
  if (error.code() == ErrorCode::kInvalidArgument) return console.refuse(error);
  return console.refuse(error, is_no_job(error) ? kNoSuchJob : int{contract::kLostHost});
}

class Inspection {
 public:
  Inspection(JobSocket socket, bool is_json, const Environment& environment)
      : socket_(std::move(socket)),
        is_json_(is_json),
        rewrites_(TerminalStyle::understands_escapes(STDOUT_FILENO, environment)),
        style_(TerminalStyle::for_fd(STDOUT_FILENO, environment)) {}

  int show_once(const Console& console) const {
    const auto job = ask();
    if (!job) return refuse_job(unanswered(socket_, job.error()), console);
    return console.print(text_of(*job));
  }

  /// Until ^C, or until the job has ended. What does not answer may do so again.
  int watch(const Console& console) const {
    sigset_t interrupt;
    sigemptyset(&interrupt);
    sigaddset(&interrupt, SIGINT);
    ::sigprocmask(SIG_BLOCK, &interrupt, nullptr);
    for (bool is_first = true;; is_first = false) {
      const auto job = ask();
      const bool has_ended = !job && job.error().code() == ErrorCode::kClosed;
      if (!job && is_no_job(job.error()) && (is_first || !has_ended))
        return refuse_job(unanswered(socket_, job.error()), console);
      if (has_ended) {
        console.note("job " + std::to_string(head_pid(socket_)) + " has ended");
        return contract::kSuccess;
      }
      if (!job) {
        console.note(unanswered(socket_, job.error()).message());
      } else if (const int code = console.print(page_of(text_of(*job), is_first));
                 code != contract::kSuccess) {
        return code;
      }
      if (::sigtimedwait(&interrupt, nullptr, &kWatchPeriod) == SIGINT) return contract::kSuccess;
    }
  }

 private:
  Result<launcher::JobInspection> ask() const {
    auto answers = launcher::ask_jobs({socket_}, launcher::message::InspectJob{contract::kVersion},
                                      Deadline::after(kPatience));
    return launcher::inspection_of(std::move(answers.front()));
  }

  std::string text_of(const launcher::JobInspection& job) const {
    return is_json_ ? inspection_json(job) : inspection_text(job, style_);
  }

  /// On a terminal each page takes the place of the one before.
  std::string page_of(const std::string& text, bool is_first) const {
    if (is_json_) return text;
    if (!rewrites_) return (is_first ? "" : "\n") + text;
    winsize size{};
    constexpr std::size_t kUsualColumns = 80, kUsualLines = 24;
    const bool known = ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 && size.ws_row > 1;
    return "\x1b[H\x1b[2J" +
           fitted(text, known ? size.ws_col : kUsualColumns, known ? size.ws_row - 1U : kUsualLines - 1) +
           "\n";
  }

  JobSocket socket_;
  bool is_json_;
  bool rewrites_;  // the terminal's whole page
  TerminalStyle style_;
};

/// At least one.
Result<std::vector<JobSocket>> find_jobs(const std::string& job) {
  const auto sockets = launcher::job_sockets_here();
  if (!sockets)
    return fail(ErrorCode::kUnavailable,
                "the jobs of this host cannot be found: " + sockets.error().message(),
                "mount /proc; ddlrun finds its sockets there");
  if (job.empty()) {
    auto own = those(*sockets, is_own);
    if (own.empty()) return fail(no_own_job(*sockets));
    return own;
  }
  auto match = sockets_of(job, *sockets);
  if (match.sockets.empty()) return fail(no_job_of_name(job, match.unnamed));
  return match.sockets;
}

Error several_jobs(const std::string& job, const std::vector<JobSocket>& found) {
  return {ErrorCode::kInvalidArgument,
          counted(found.size(), "job") + (job.empty() ? " run here" : " are called " + shell_quote(job)),
          "name one by the pid of its ddlrun: " + pids_text(found)};
}

/// Asks the only job that this may be, and reads its answer.
template <class Answer>
Result<Answer> ask_one_job(const std::string& job, const launcher::message::ClientToJob& request,
                           Result<Answer> (*read)(Result<std::vector<launcher::message::JobToClient>>&&)) {
  DDL_ASSIGN(found, find_jobs(job));
  if (found.size() > 1) return fail(several_jobs(job, found));
  auto answers = launcher::ask_jobs({found.front()}, request, Deadline::after(kPatience));
  auto answer = read(std::move(answers.front()));
  if (!answer) return fail(unanswered(found.front(), std::move(answer.error())));
  return answer;
}

}  // namespace

int print_metrics(const Request& request, const Environment& /*environment*/, const Console& console) {
  const auto job = ask_one_job(request.inspect.job, launcher::message::InspectJob{contract::kVersion, true},
                               launcher::inspection_of);
  if (!job) return refuse_job(job.error(), console);
  return console.print(report::metrics_text(*job, request.metrics.format, request.metrics.detail));
}

int change_timeline(const Request& request, const Environment& /*environment*/, const Console& console) {
  const launcher::message::ChangeTimeline change{contract::kVersion, request.timeline.starts,
                                                 request.timeline.file};
  const auto path = ask_one_job(request.inspect.job, change, launcher::timeline_of);
  if (!path) return refuse_job(path.error(), console);
  return console.print(change.starts
                           ? "a timeline is recorded; ddlrun --timeline stop, or the end of the job, "
                             "writes it to " +
                                 *path + "\n"
                           : "the timeline is being written to " + *path + "\n");
}

int inspect(const Request& request, const Environment& environment, const Console& console) {
  const std::string& job = request.inspect.job;
  const auto matching = find_jobs(job);
  if (!matching) return refuse_job(matching.error(), console);
  const auto& found = *matching;
  if (found.size() == 1) {
    const Inspection inspection(found.front(), request.json, environment);
    return request.inspect.watches ? inspection.watch(console) : inspection.show_once(console);
  }
  if (!job.empty() || request.inspect.watches) {
    return console.refuse(several_jobs(job, found));
  }
  const auto jobs = describe(found);
  return console.print(request.json ? jobs_json(jobs)
                                    : counted(jobs.size(), "job") +
                                          " run here; name one: ddlrun --inspect PID\n\n" + jobs_text(jobs));
}

}  // namespace ddl::cli
