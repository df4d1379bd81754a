#include "report/job_record.h"

#include <algorithm>
#include <array>
#include <optional>
#include <stdexcept>
#include <type_traits>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/text.h"
#include "contract/ddl_names.h"
#include "contract/version.h"
#include "timeline/event_text.h"

namespace ddl::report {
namespace {

// The fields of a record in JSON, each described once for both directions.

using Json = nlohmann::ordered_json;

/// The words of an enumeration, by its values.
template <class Enum, std::size_t size>
using Words = std::array<std::pair<Enum, const char*>, size>;

/// Writes the fields of a value into an object.
class FieldWriter {
 public:
  explicit FieldWriter(Json& json) : json_(json) {}
  static constexpr bool kReads = false;

  template <class T>
  void value(const char* name, const T& field) {
    json_[name] = field;
  }
  void value(const char* name, const Seconds& field) { json_[name] = field.value; }
  /// null unless it is known.
  template <class T>
  void known(const char* name, const T& field, bool is_known) {
    is_known ? value(name, field) : static_cast<void>(json_[name] = nullptr);
  }
  void text(const char* name, const std::string& field) { known(name, field, !field.empty()); }
  template <class T>
  void optional(const char* name, const std::optional<T>& field) {
    json_[name] = field ? Json(*field) : Json(nullptr);
  }
  template <class Enum, std::size_t size>
  void word(const char* name, const Enum& field, const Words<Enum, size>& words) {
    for (const auto& [value, word] : words)
      if (value == field) json_[name] = word;
  }
  /// visit(fields, one) describes the fields of each.
  template <class T, class Visit>
  void list(const char* name, std::vector<T>& field, Visit visit) {
    Json& array = json_[name] = Json::array();
    for (T& one : field) {
      array.push_back(Json::object());
      FieldWriter fields(array.back());
      visit(fields, one);
    }
  }

 private:
  Json& json_;
};

/// Reads them from an object. A field that is missing or null keeps the value that it has.
class FieldReader {
 public:
  explicit FieldReader(const Json& json) : json_(json) {
    if (!json.is_object()) throw std::invalid_argument("an object was expected in place of " + json.dump());
  }
  static constexpr bool kReads = true;

  template <class T>
  void value(const char* name, T& field) {
    const Json* const found = find(name);
    if (found == nullptr) return;
    if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
      if (!found->is_number_integer() || !std::in_range<T>(found->get<std::int64_t>()) ||
          (found->is_number_unsigned() && !std::in_range<T>(found->get<std::uint64_t>())))
        throw std::invalid_argument(std::string(name) + " is not a whole number in its range");
    }
    field = found->get<T>();
  }
  /// Numbers with a fraction are seconds.
  void value(const char* name, double& field) {
    const Json* const found = find(name);
    if (found == nullptr) return;
    constexpr double kMostSeconds = 1e11;
    const auto seconds = found->get<double>();
    if (!(seconds >= 0 && seconds <= kMostSeconds))
      throw std::invalid_argument(std::string(name) + " is negative, or longer than 3,000 years");
    field = seconds;
  }
  void value(const char* name, Seconds& field) { value(name, field.value); }
  /// Numbers of things, from 0 on.
  void value(const char* name, std::vector<int>& field) {
    const Json* const found = find(name);
    if (found == nullptr) return;
    for (const Json& one : *found) {
      if (!one.is_number_unsigned() || !std::in_range<int>(one.get<std::uint64_t>()))
        throw std::invalid_argument(std::string(name) + " has an element that is no number of a thing");
      field.push_back(one.get<int>());
    }
  }
  template <class T>
  void known(const char* name, T& field, bool /*is_known*/) {
    value(name, field);
  }
  void text(const char* name, std::string& field) { value(name, field); }
  template <class T>
  void optional(const char* name, std::optional<T>& field) {
    if (const Json* const found = find(name)) field = found->get<T>();
  }
  template <class Enum, std::size_t size>
  void word(const char* name, Enum& field, const Words<Enum, size>& words) {
    const Json* const found = find(name);
    if (found == nullptr) return;
    const auto word = found->get<std::string>();
    for (const auto& [value, known] : words) {
      if (known != word) continue;
      field = value;
      return;
    }
    throw std::invalid_argument(std::string(name) + ": \"" + word + "\" is unknown");
  }
  template <class T, class Visit>
  void list(const char* name, std::vector<T>& field, Visit visit) {
    const Json* const found = find(name);
    if (found == nullptr) return;
    if (!found->is_array()) throw std::invalid_argument(std::string(name) + " is not an array");
    for (const Json& one : *found) {
      FieldReader fields(one);
      visit(fields, field.emplace_back());
    }
  }

 private:
  const Json* find(const char* name) const {
    const auto found = json_.find(name);
    return found == json_.end() || found->is_null() ? nullptr : &*found;
  }
  const Json& json_;
};

// The record.

using launcher::GenerationReport;
using launcher::JobReport;
using launcher::RankOutcome;

constexpr const char* kSchema = "ddl.report/1";
constexpr const char* kScalingSchema = "ddl.scaling/1";

constexpr Words<ScalingKind, 2> kScalingKinds = {
    {{ScalingKind::kStrong, "strong"}, {ScalingKind::kWeak, "weak"}}};

constexpr Words<RankOutcome::Kind, 5> kOutcomes = {{{RankOutcome::Kind::kNotStarted, "not_started"},
                                                    {RankOutcome::Kind::kStartFailed, "start_failed"},
                                                    {RankOutcome::Kind::kRunning, "running"},
                                                    {RankOutcome::Kind::kExited, "exited"},
                                                    {RankOutcome::Kind::kSignalled, "signalled"}}};

template <class Fields>
void visit_calls(Fields& fields, launcher::RankCalls& calls) {
  fields.list("calls", calls.sums, [](auto& of, launcher::CallSum& sum) {
    of.value("kind", sum.kind);
    of.value("named", sum.is_named);
    of.value("calls", sum.calls);
    of.value("bytes", sum.bytes);
    of.value("seconds", sum.seconds);
    of.value("wait_seconds", sum.wait_seconds);
  });
  fields.value("tensor_wait_seconds", calls.tensor_wait_seconds);
  fields.value("steps", calls.steps);
  fields.value("step_seconds", calls.step_seconds);
  fields.list("awaited", calls.awaited, [](auto& of, launcher::AwaitedRank& one) {
    of.value("rank", one.rank);
    of.value("seconds", one.seconds);
  });
}

template <class Fields>
void visit_rank(Fields& fields, RankOutcome& rank) {
  fields.value("rank", rank.rank);
  fields.value("host", rank.host);
  fields.known("pid", rank.pid, rank.pid > 0);
  fields.word("outcome", rank.kind, kOutcomes);
  fields.known("exit_code", rank.exit_code, rank.kind == RankOutcome::Kind::kExited);
  fields.known("signal", rank.signal, rank.kind == RankOutcome::Kind::kSignalled);
  fields.value("core_dumped", rank.core_dumped);
  fields.value("ended_by_ddlrun", rank.ended_by_us);
  fields.known("seen_gone", rank.gone_rank, rank.gone_rank >= 0);
  fields.value("run_seconds", rank.run_seconds);
  fields.known("user_seconds", rank.usage.user_seconds, rank.usage.user_seconds.value >= 0);
  fields.known("system_seconds", rank.usage.system_seconds, rank.usage.system_seconds.value >= 0);
  fields.known("peak_resident_bytes", rank.usage.peak_resident_bytes, rank.usage.peak_resident_bytes >= 0);
  fields.known("clock_hertz", rank.clock_hertz, rank.clock_hertz >= 0);
  visit_calls(fields, rank.calls);
  fields.text("start_error", rank.start_error);
  fields.text("kill_explanation", rank.kill_explanation);
  fields.value("stderr_tail", rank.stderr_tail);
}

template <class Fields>
void visit_host(Fields& fields, launcher::HostUsage& host) {
  launcher::NodeUsage& usage = host.usage;
  launcher::MemoryUse& memory = usage.memory;
  fields.value("host", host.host);
  fields.value("seconds", usage.seconds);
  fields.known("cpus", usage.cpus, usage.cpus > 0);
  fields.known("memory_limit_bytes", memory.limit, memory.limit >= 0);
  fields.known("memory_peak_bytes", memory.peak, memory.peak >= 0);
  fields.known("oom_kills", memory.oom_kills, memory.oom_kills >= 0);
  fields.text("memory_cgroup", memory.cgroup);
  fields.text("memory_unknown", memory.unknown);
  fields.list("networks", usage.networks, [](auto& of, launcher::NetworkUse& one) {
    of.value("device", one.device);
    of.value("received_bytes", one.received_bytes);
    of.value("sent_bytes", one.sent_bytes);
    of.known("limit_bytes_per_second", one.limit_bytes_per_second, one.limit_bytes_per_second > 0);
  });
  fields.list("energy", usage.energy, [](auto& of, launcher::EnergyUse& one) {
    of.value("domain", one.domain);
    of.value("joules", one.joules);
  });
  fields.text("energy_unknown", usage.energy_unknown);
  fields.list("gpus", usage.gpus, [](auto& of, launcher::GpuUse& one) {
    of.value("name", one.name);
    of.value("index", one.index);
    of.value("model", one.model);
    of.known("busy_ratio", one.busy_ratio, one.busy_ratio >= 0);
    of.known("memory_peak_bytes", one.memory_peak_bytes, one.memory_peak_bytes >= 0);
    of.known("memory_limit_bytes", one.memory_limit_bytes, one.memory_limit_bytes >= 0);
    of.known("joules", one.joules, one.joules >= 0);
  });
  fields.text("gpus_unknown", usage.gpus_unknown);
}

template <class Fields>
void visit_end(Fields& fields, launcher::JobEnd& end) {
  fields.word("reason", end.reason, launcher::kEndReasonNames);
  fields.value("exit_code", end.exit_code);
  fields.optional("first_failure", end.first_failure);
  fields.text("message", end.message);
  fields.text("abort_message", end.abort_message);
  fields.known("signal", end.signal, end.signal != 0);
}

template <class Fields>
void visit_generation(Fields& fields, GenerationReport& generation) {
  fields.value("generation", generation.number.generation);
  fields.value("restarts", generation.number.restarts);
  fields.value("num_ranks", generation.num_ranks);
  fields.value("hosts", generation.hosts);
  fields.value("begin_seconds", generation.begin_seconds);
  fields.value("run_seconds", generation.run_seconds);
  fields.word("reason", generation.end.reason, launcher::kEndReasonNames);
  fields.optional("first_failure", generation.end.first_failure);
  fields.text("message", generation.end.message);
  fields.value("commits", generation.commits);
  fields.optional("recovery_seconds", generation.recovery_seconds);
}

template <class Fields>
void visit_report(Fields& fields, JobReport& report) {
  visit_end(fields, report);
  if (Fields::kReads || !report.host_failures.empty()) fields.value("hosts_failed", report.host_failures);
  fields.value("run_seconds", report.run_seconds);
  fields.value("leftovers_ended", report.leftovers_ended);
  fields.text("timeline", report.timeline);
  if (Fields::kReads || !report.generations.empty())
    fields.list("generations", report.generations,
                [](auto& of, GenerationReport& one) { visit_generation(of, one); });
  fields.list("start", report.start, [](auto& of, launcher::StartPhase& phase) {
    of.value("name", phase.name);
    of.value("seconds", phase.seconds);
  });
  if (Fields::kReads || !report.stalls.empty()) fields.value("stalls", report.stalls);
  fields.list("host_usage", report.hosts, [](auto& of, launcher::HostUsage& one) { visit_host(of, one); });
  fields.list("planned", report.planned, [](auto& of, launcher::PlannedRank& one) {
    of.text("cpus", one.cpus);
    of.value("gpus", one.gpus);
  });
  fields.list("ranks", report.ranks, [](auto& of, RankOutcome& one) { visit_rank(of, one); });
}

template <class Fields>
void visit_record(Fields& fields, JobRecord& record) {
  fields.value("ddlrun", record.version);
  fields.value("name", record.name);
  fields.value("command", record.command);
  fields.value("workdir", record.workdir);
  fields.text("scheduler_job", record.scheduler_job);
  fields.value("num_ranks", record.num_ranks);
  fields.value("hosts", record.hosts);
  fields.value("began", record.began);
  fields.value("environment", record.environment);
  fields.value("said", record.said);
  visit_report(fields, record.report);
}

Json text_or_null(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

Json binding_json(const launcher::BoundRank& rank) {
  const auto list_or_null = [](const CpuSet& cpus) {
    return cpus.is_empty() ? Json(nullptr) : Json(cpus.list());
  };
  Json gpus(nullptr);
  if (rank.gpus) gpus = Json::array();
  for (const launcher::SeenGpu& gpu : rank.gpus.value_or(std::vector<launcher::SeenGpu>()))
    gpus.push_back({{"bus_id", gpu.bus_id}, {"uuid", text_or_null(gpu.uuid)}});
  return {{"planned_cpus", list_or_null(rank.planned)},
          {"cpus", list_or_null(rank.kernel.cpus)},
          {"memory", text_or_null(rank.kernel.memory)},
          {"devices", text_or_null(rank.kernel.devices)},
          {"gpus", std::move(gpus)},
          {"difference", text_or_null(rank.difference)}};
}

/// Times are seconds before the events were read.
Json history_json(const launcher::RankHistory& history) {
  constexpr double kNanoseconds = 1e9;
  const auto before = [&](std::int64_t time) {
    return std::max(static_cast<double>(history.now) - static_cast<double>(time), 0.0) / kNanoseconds;
  };
  Json json;
  double seconds = 0;
  json["rank"] = history.rank;
  json["work"] = text_or_null(launcher::last_work(history, seconds));
  json["work_seconds"] = seconds;
  json["events"] = Json::array();
  for (const contract::Event& event : history.events) {
    const auto traits = timeline::traits_of(event.kind);
    const char* const status = contract::name_or_null(contract::kStatusNames, std::max<int>(event.status, 0));
    const bool is_open = timeline::is_unfinished(event);
    json["events"].push_back({{"what", traits.category},
                              {"name", std::string(timeline::title_of(event))},
                              {"number", event.call},
                              {"bytes", event.bytes},
                              {"began_before_seconds", before(event.begin)},
                              {"ended_before_seconds", is_open ? Json(nullptr) : Json(before(event.end))},
                              {"status", is_open || status == nullptr ? Json(nullptr) : Json(status)}});
  }
  return json;
}

/// What is only written: no report is drawn from it.
void add_details(Json& json, const JobReport& report) {
  json["last_events"] = Json::array();
  for (const launcher::RankHistory& history : report.histories)
    json["last_events"].push_back(history_json(history));
  for (Json& rank : json["ranks"]) {
    const auto bound = report.bindings.find(rank["rank"].get<int>());
    if (bound != report.bindings.end()) rank["binding"] = binding_json(bound->second);
  }
}

std::string line_of(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

Json json_of(const JobRecord& record) {
  Json json;
  json["schema"] = kSchema;
  FieldWriter fields(json);
  JobRecord written = record;
  visit_record(fields, written);
  add_details(json, record.report);
  return json;
}

std::string schema_of(const Json& json) {
  std::string schema;
  FieldReader(json).value("schema", schema);
  return schema;
}

/// These throw if the text is not that of a record.
JobRecord job_record_of(const Json& json) {
  if (schema_of(json) != kSchema)
    throw std::invalid_argument(std::string("it is not of the schema ") + kSchema);
  JobRecord record;
  FieldReader fields(json);
  visit_record(fields, record);
  return record;
}

ScalingStudy scaling_study_of(const Json& json) {
  ScalingStudy study;
  FieldReader(json).word("kind", study.kind, kScalingKinds);
  for (const Json& run : json.at("runs")) study.runs.push_back(job_record_of(run));
  if (study.runs.empty()) throw std::invalid_argument("it has no run");
  return study;
}

/// what(json), or what is wrong.
template <class What>
auto parsed(std::string_view text, What what) -> Result<decltype(what(Json()))> try {
  return what(Json::parse(text));
} catch (const std::exception& error) {
  return fail(ErrorCode::kInvalidArgument, error.what());
}

}  // namespace

Environment shown_variables(const Environment& all) {
  Environment shown;
  for (const auto& [name, value] : all) {
    const auto starts = [&name = name](const char* start) { return name.starts_with(start); };
    const auto has = [&name = name](const char* word) { return name.find(word) != std::string::npos; };
    constexpr std::array kShown = {"DDL_", "OMP_", "NCCL_", "UCX_", "FI_"};
    constexpr std::array kSecret = {"TOKEN", "KEY", "SECRET", "PASS", "CREDENTIAL"};
    if (std::ranges::any_of(kShown, starts) && std::ranges::none_of(kSecret, has)) shown.emplace(name, value);
  }
  return shown;
}

std::string to_json(const JobRecord& record) { return line_of(json_of(record)); }

std::string to_json(const ScalingStudy& study) {
  Json json;
  json["schema"] = kScalingSchema;
  FieldWriter(json).word("kind", study.kind, kScalingKinds);
  json["runs"] = Json::array();
  for (const JobRecord& run : study.runs) json["runs"].push_back(json_of(run));
  return line_of(json);
}

std::string to_json(const Record& record) {
  return std::visit([](const auto& one) { return to_json(one); }, record);
}

Result<JobRecord> parse_job_record(std::string_view json) { return parsed(json, job_record_of); }

Result<Record> parse_record(std::string_view json) {
  return parsed(json, [](const Json& one) -> Record {
    if (schema_of(one) == kScalingSchema) return scaling_study_of(one);
    return job_record_of(one);
  });
}

std::string report_json(const launcher::JobReport& report) {
  Json json;
  json["ddlrun"] = contract::kVersion;
  json["kind"] = "job_report";
  FieldWriter fields(json);
  JobReport written = report;
  visit_report(fields, written);
  add_details(json, report);
  return line_of(json);
}

}  // namespace ddl::report
