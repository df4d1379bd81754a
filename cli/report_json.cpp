#include "cli/report_json.h"

#include <nlohmann/json.hpp>

#include "base/text.h"
#include "contract/version.h"

namespace ddl::cli {

using launcher::EndReason;
using launcher::RankOutcome;
using Json = nlohmann::ordered_json;

namespace {

const char* name_of(EndReason reason) {
  switch (reason) {
    case EndReason::kSuccess: return "success";
    case EndReason::kRankFailed: return "rank_failed";
    case EndReason::kAborted: return "aborted";
    case EndReason::kStartFailed: return "start_failed";
    case EndReason::kHostLost: return "host_lost";
    case EndReason::kTimeout: return "timeout";
    case EndReason::kRankStopped: return "rank_stopped";
    case EndReason::kSignal: return "signal";
    case EndReason::kOutputLost: return "output_lost";
  }
  return "unknown";
}

const char* name_of(RankOutcome::Kind kind) {
  switch (kind) {
    case RankOutcome::Kind::kNotStarted: return "not_started";
    case RankOutcome::Kind::kStartFailed: return "start_failed";
    case RankOutcome::Kind::kRunning: return "running";
    case RankOutcome::Kind::kExited: return "exited";
    case RankOutcome::Kind::kSignalled: return "signalled";
  }
  return "unknown";
}

Json text_or_null(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

Json binding_json(const launcher::BoundRank& rank) {
  const auto list_or_null = [](const affinity::CpuSet& cpus) {
    return cpus.is_empty() ? Json(nullptr) : Json(cpus.list());
  };
  return {{"planned_cpus", list_or_null(rank.planned)},
          {"cpus", list_or_null(rank.kernel.cpus)},
          {"memory", text_or_null(rank.kernel.memory)},
          {"devices", text_or_null(rank.kernel.devices)},
          {"difference", text_or_null(rank.difference)}};
}

Json rank_json(const RankOutcome& rank) {
  const bool exited = rank.kind == RankOutcome::Kind::kExited;
  const bool signalled = rank.kind == RankOutcome::Kind::kSignalled;
  Json json;
  json["rank"] = rank.rank;
  json["host"] = rank.host;
  json["pid"] = rank.pid > 0 ? Json(rank.pid) : Json(nullptr);
  json["outcome"] = name_of(rank.kind);
  json["exit_code"] = exited ? Json(rank.exit_code) : Json(nullptr);
  json["signal"] = signalled ? Json(rank.signal) : Json(nullptr);
  json["core_dumped"] = rank.core_dumped;
  json["ended_by_ddlrun"] = rank.ended_by_us;
  json["seen_gone"] = rank.gone_rank >= 0 ? Json(rank.gone_rank) : Json(nullptr);
  json["run_seconds"] = rank.run_seconds.value;
  json["start_error"] = text_or_null(rank.start_error);
  json["kill_explanation"] = text_or_null(rank.kill_explanation);
  json["stderr_tail"] = rank.stderr_tail;
  return json;
}

}  // namespace

std::string report_json(const launcher::JobReport& report) {
  Json json;
  json["ddlrun"] = contract::kVersion;
  json["kind"] = "job_report";
  json["reason"] = name_of(report.reason);
  json["exit_code"] = report.exit_code;
  json["first_failure"] = report.first_failure ? Json(*report.first_failure) : Json(nullptr);
  json["message"] = text_or_null(report.message);
  json["abort_message"] = text_or_null(report.abort_message);
  json["signal"] = report.signal != 0 ? Json(report.signal) : Json(nullptr);
  if (!report.host_failures.empty()) json["hosts_failed"] = report.host_failures;
  json["run_seconds"] = report.run_seconds;
  json["leftovers_ended"] = report.leftovers_ended;
  json["ranks"] = Json::array();
  for (const RankOutcome& rank : report.ranks) {
    json["ranks"].push_back(rank_json(rank));
    const auto bound = report.bindings.find(rank.rank);
    if (bound != report.bindings.end()) json["ranks"].back()["binding"] = binding_json(bound->second);
  }
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace ddl::cli
