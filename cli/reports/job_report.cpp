#include "cli/reports/job_report.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <csignal>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/printable_text.h"
#include "base/text.h"
#include "cli/reports/start_advice.h"
#include "contract/ddl_names.h"
#include "contract/ddlrun.h"
#include "contract/version.h"
#include "timeline/event_text.h"

namespace ddl::cli {

using launcher::EndReason;
using launcher::JobReport;
using launcher::JobSpec;
using launcher::RankOutcome;

namespace {

int exit_code_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidArgument: return contract::kUsageError;
    case ErrorCode::kNotFound: return contract::kNotFound;
    case ErrorCode::kInternal: return contract::kInternalError;
    default: return contract::kStartFailure;
  }
}

const RankOutcome* culprit_of(const JobReport& report) {
  if (!report.first_failure) return nullptr;
  const auto it = std::find_if(report.ranks.begin(), report.ranks.end(),
                               [&](const RankOutcome& rank) { return rank.rank == *report.first_failure; });
  return it == report.ranks.end() ? nullptr : &*it;
}

/// "SIGTERM", without its explanation.
std::string signal_name(int signal) {
  const std::string text = signal_text(signal);
  return text.substr(0, text.find(" ("));
}

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  for (const std::string_view line : split(trim(text), '\n')) lines.emplace_back(line);
  return lines;
}

/// roles: JobSpec::roles, if they are to be named.
std::string label_of(const RankOutcome& rank, const launcher::RankRoles& roles = {}) {
  std::string text = rank_label(rank);
  const launcher::RoleOfRank role = launcher::role_of(roles, rank.rank);
  if (!roles.empty())
    text.insert(fmt::format("rank {}", rank.rank).size(), fmt::format(", {} {},", role.name, role.index));
  return text;
}

/// A culprit that is one because others waited for it.
bool has_left(const RankOutcome& culprit) {
  return culprit.kind == RankOutcome::Kind::kExited && culprit.exit_code == 0;
}

std::string headline(const JobReport& report, const RankOutcome* culprit, const JobSpec& job) {
  const std::string after =
      " after " + launcher::duration_text(culprit ? culprit->run_seconds.value : report.run_seconds);
  switch (report.reason) {
    case EndReason::kSuccess: return "";
    case EndReason::kRankFailed:
      if (culprit) {
        return label_of(*culprit, job.roles) + " " + rank_ending(*culprit) + after +
               (has_left(*culprit) ? " while others waited for it" : "");
      }
      break;
    case EndReason::kAborted:
      if (culprit)
        return fmt::format("{} aborted the job with code {}{}", label_of(*culprit, job.roles),
                           report.exit_code, after);
      break;
    case EndReason::kStartFailed:
      if (culprit) return label_of(*culprit, job.roles) + " " + rank_ending(*culprit);
      break;
    case EndReason::kHostLost:
    case EndReason::kHostsChanged:
    case EndReason::kDrained:
    case EndReason::kPortTaken: break;
    case EndReason::kOutputLost: return "every rank exited with 0, but part of the ranks' output was lost";
    case EndReason::kTimeout:
      return fmt::format("the job was ended because it was still running after {} s (--timeout)",
                         job.timeout_seconds);
    case EndReason::kStalled:
      return fmt::format(
          "the job was ended because ranks had waited for {} s (--stall-check-shutdown-time-seconds)",
          job.stall_shutdown_seconds);
    case EndReason::kRankStopped:
      if (culprit) {
        return fmt::format("the job was ended because {} was stopped by {} and did not continue",
                           label_of(*culprit, job.roles), signal_text(report.signal));
      }
      break;
    case EndReason::kSignal: return fmt::format("ended by {}{}", signal_name(report.signal), after);
  }
  return report.message.empty() ? "the job failed" + after : report.message;
}

/// What happened to one rank that is not the culprit. Ranks with equal outcomes have equal texts.
std::string outcome_text(const RankOutcome& rank, const RankOutcome* culprit, bool several) {
  const std::string were = several ? "were" : "was";
  switch (rank.kind) {
    case RankOutcome::Kind::kNotStarted: return were + " not started";
    case RankOutcome::Kind::kStartFailed:
      return "could not be started" + std::string(culprit ? " either" : "");
    case RankOutcome::Kind::kRunning: return were + " running at the last report";
    case RankOutcome::Kind::kSignalled:
      return were + (rank.ended_by_us ? " ended with " + signal_name(rank.signal)
                                      : " killed by " + signal_text(rank.signal));
    case RankOutcome::Kind::kExited: {
      // A rank that handles SIGTERM may exit with 0 later than the culprit: only an earlier end was not caused by it.
      const bool before = rank.exit_code == 0 && culprit && rank.run_seconds < culprit->run_seconds;
      return fmt::format("{} with {}", before ? "had already exited" : "exited", rank.exit_code);
    }
  }
  return "";
}

/// "ranks 0, 2-5 were ended with SIGTERM; rank 7 had already exited with 0"; "" if there are no other ranks.
std::string other_outcomes(const JobReport& report, const RankOutcome* culprit) {
  std::vector<std::pair<std::string, std::vector<const RankOutcome*>>>
      groups;  // in order of their lowest rank
  for (const RankOutcome& rank : report.ranks) {
    if (&rank == culprit) continue;
    const std::string key = outcome_text(rank, culprit, true);
    auto group =
        std::find_if(groups.begin(), groups.end(), [&](const auto& one) { return one.first == key; });
    if (group == groups.end()) group = groups.insert(groups.end(), {key, {}});
    group->second.push_back(&rank);
  }
  std::vector<std::string> sentences;
  for (const auto& [key, members] : groups) {
    std::vector<int> ranks;
    for (const RankOutcome* rank : members) ranks.push_back(rank->rank);
    sentences.push_back(launcher::ranks_text(ranks) + " " +
                        outcome_text(*members.front(), culprit, members.size() > 1));
  }
  return join(sentences, "; ");
}

/// The rank whose end libddl had reported to the culprit; "" if there was none.
std::string reported_as_gone(const JobReport& report, const RankOutcome* culprit) {
  if (!culprit || culprit->gone_rank < 0) return "";
  const auto gone = std::find_if(report.ranks.begin(), report.ranks.end(),
                                 [&](const RankOutcome& one) { return one.rank == culprit->gone_rank; });
  if (gone == report.ranks.end()) return "";
  return "before that, libddl had reported to it that " + label_of(*gone) + " was gone";
}

std::string next_step_after_signal(const RankOutcome& culprit) {
  switch (culprit.signal) {
    case SIGKILL:
      // An explanation already names memory, if that was the cause.
      if (!culprit.kill_explanation.empty()) return "";
      return "ddlrun did not send it: look for the kernel's out-of-memory killer in 'dmesg' on " +
             culprit.host;
    case SIGSEGV:
    case SIGBUS:
    case SIGABRT:
    case SIGFPE:
    case SIGILL:
      return culprit.core_dumped ? "look at the core file: coredumpctl debug " + std::to_string(culprit.pid) +
                                       ", or gdb with the program and the file"
                                 : "for a core file, type 'ulimit -c unlimited' before ddlrun; for a Python "
                                   "program, -x PYTHONFAULTHANDLER=1 shows where it was";
    default: return "";
  }
}

/// What to do next, in one sentence; "" if the lines above suffice.
std::string next_step(const JobReport& report, const RankOutcome* culprit, const JobSpec& job) {
  switch (report.reason) {
    case EndReason::kDrained: return "the same command goes on from there";
    case EndReason::kTimeout: return "if it was still making progress, give --timeout more seconds";
    case EndReason::kStartFailed:
      if (!report.hint.empty()) return report.hint;
      return culprit && !job.command.empty() ? start_advice(culprit->start_error, job.command) : "";
    case EndReason::kRankFailed:
      if (!culprit) return "";
      if (std::string step = misplaced_option_advice(job.command, culprit->stderr_tail); !step.empty())
        return step;
      if (std::string step = missing_package_advice(culprit->stderr_tail); !step.empty()) return step;
      if (culprit->kind == RankOutcome::Kind::kSignalled) {
        if (std::string step = next_step_after_signal(*culprit); !step.empty()) return step;
      }
      if (has_left(*culprit))
        return "let it make the calls that the others make, or end all of them by ddl_abort()";
      // The tail may be incomplete: name the file that contains all output, or the option that makes one.
      if (culprit->stderr_tail.size() < StderrTail::kMaxLines) return "";
      return job.output_directory.empty() ? "--output-filename DIR keeps all output of every rank"
                                          : "all its output is in " + job.output_directory;
    default: return "";
  }
}

/// A report for a terminal. It quotes output of programs, so control characters in it are made printable.
class Page {
 public:
  explicit Page(const TerminalStyle& style) : style_(style) {}

  void line(const std::string& text) { text_ += "  " + printable_line(text) + "\n"; }
  void next(const std::string& text) {
    text_ += "  " + style_.strong("next:") + " " + printable_line(text) + "\n";
  }
  void quote(const std::string& title, const std::vector<std::string>& lines) {
    line(title + ":");
    for (const std::string& one : lines)
      text_ += "  " + style_.faint("|") + (one.empty() ? "" : " " + printable_line(one)) + "\n";
  }
  void head(const std::string& text) {
    text_ += style_.alarm("ddlrun:") + " " + style_.strong(printable_text(text)) + "\n";
  }
  std::string take() { return std::move(text_); }

 private:
  const TerminalStyle& style_;
  std::string text_;
};

}  // namespace

launcher::JobReport error_report(const Error& error) {
  launcher::JobReport report;
  report.reason = launcher::EndReason::kStartFailed;
  report.exit_code = exit_code_of(error.code());
  report.message = error.message();
  report.hint = error.hint();
  return report;
}

std::string success_sentence(const JobReport& report) {
  const auto exited = std::count_if(report.ranks.begin(), report.ranks.end(), [](const RankOutcome& rank) {
    return rank.kind == RankOutcome::Kind::kExited && rank.exit_code == 0;
  });
  const auto others = std::ssize(report.ranks) - exited;
  return counted(exited, "rank") + " exited with 0 after " + launcher::duration_text(report.run_seconds) +
         (others > 0 ? ", and " + std::to_string(others) + " that served " + (others == 1 ? "was" : "were") +
                           " ended"
                     : "");
}

std::string failure_report(const JobReport& report, const JobSpec& job, const TerminalStyle& style) {
  if (report.reason == EndReason::kSuccess) return "";
  const RankOutcome* culprit = culprit_of(report);
  const std::string head = headline(report, culprit, job);
  const std::vector<std::string> message_lines = lines_of(report.abort_message);
  const bool has_message = !trim(report.abort_message).empty();

  Page page(style);
  if (report.reason == EndReason::kSignal && report.signal == SIGPIPE) {
    // As after "| head": nothing went wrong, and one line says why the exit code is not 0.
    page.head(report.message + ", so " + counted(report.ranks.size(), "rank") +
              (report.ranks.size() == 1 ? " was ended" : " were ended"));
    return page.take();
  }
  page.head(has_message && message_lines.size() == 1 ? head + ": " + message_lines.front() : head);
  if (has_message && message_lines.size() > 1) page.quote("its message", message_lines);
  if (!report.message.empty() && report.message != head) page.line(report.message);
  for (const std::string& host : report.host_failures) page.line(host);
  if (culprit && !culprit->kill_explanation.empty()) page.line(culprit->kill_explanation);
  if (culprit && culprit->kind == RankOutcome::Kind::kExited && !culprit->start_error.empty())
    page.line(culprit->start_error);
  if (std::string seen = reported_as_gone(report, culprit); !seen.empty()) page.line(seen);
  if (culprit && !culprit->stderr_tail.empty()) {
    const std::size_t count = culprit->stderr_tail.size();
    page.quote(count == 1 ? "its last line on standard error"
                          : fmt::format("its last {} lines on standard error", count),
               culprit->stderr_tail);
  } else if (culprit && report.saw_output && !has_left(*culprit) &&
             culprit->kind != RankOutcome::Kind::kStartFailed &&
             culprit->kind != RankOutcome::Kind::kNotStarted) {
    page.line("it wrote nothing on standard error");
  }
  if (std::string others = other_outcomes(report, culprit);
      !others.empty() && report.reason != EndReason::kOutputLost)
    page.line(others);
  for (const std::string& sentence : launcher::last_work_sentences(report.histories)) page.line(sentence);
  if (report.leftovers_ended == 1) {
    page.line("1 process outlived its rank and was ended");
  } else if (report.leftovers_ended > 1) {
    page.line(fmt::format("{} processes outlived their ranks and were ended", report.leftovers_ended));
  }
  if (std::string step = next_step(report, culprit, job); !step.empty()) page.next(step);
  return page.take();
}

nlohmann::ordered_json text_or_null(const std::string& text) {
  return text.empty() ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(text);
}

}  // namespace ddl::cli
