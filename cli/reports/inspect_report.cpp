#include "cli/reports/inspect_report.h"

#include <algorithm>
#include <ctime>
#include <map>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/printable_text.h"
#include "base/text.h"
#include "base/text_table.h"
#include "cli/reports/job_report.h"
#include "contract/version.h"

namespace ddl::cli {

using launcher::CurrentWork;
using launcher::InspectedRank;
using launcher::InspectedWait;
using launcher::JobDescription;
using launcher::JobInspection;
using Json = nlohmann::ordered_json;

namespace {

constexpr std::string_view kUnknown = "-";
constexpr std::size_t kMaxTensorName = 32;

std::string or_unknown(std::string text) { return text.empty() ? std::string(kUnknown) : std::move(text); }

std::string age_text(double seconds) {
  return seconds < 0       ? std::string(kUnknown)
         : seconds < 9.995 ? fmt::format("{:.2f} s", seconds)
                           : launcher::duration_text(seconds);
}

std::string bytes_text(std::int64_t bytes) {
  constexpr double kMega = 1e6, kGiga = 1e9;
  if (bytes < 0) return std::string(kUnknown);
  const auto size = static_cast<double>(bytes);
  return size < kGiga ? fmt::format("{:.0f} MB", size / kMega) : fmt::format("{:.1f} GB", size / kGiga);
}

/// "2024-05-01 12:00:03", in the time zone of this process.
std::string local_time_text(std::int64_t seconds) {
  const auto time = static_cast<std::time_t>(seconds);
  std::tm parts{};
  char text[32];
  if (::localtime_r(&time, &parts) == nullptr) return std::string(kUnknown);
  return {text, std::strftime(text, sizeof text, "%F %T", &parts)};
}

std::string since_text(const JobDescription& job) {
  return local_time_text(job.began) + " (" + launcher::duration_text(job.age) + ")";
}

/// The beginning of a long one: mpirun's names all variables of the job.
std::string command_text(const std::string& command) {
  constexpr std::size_t kMaxColumns = 160;
  const std::string text = printable_line(command);
  const std::string start = fitted(text, kMaxColumns, 1);
  return start == text ? text : start + "...";
}

struct StateName {
  const char* text;
  const char* json;
};

StateName state_of(const InspectedRank& rank) {
  switch (rank.state) {
    case InspectedRank::State::kNotStarted: return {"not started", "not_started"};
    case InspectedRank::State::kEnded: return {"ended", "ended"};
    case InspectedRank::State::kNoAnswer: return {"no answer", "no_answer"};
    case InspectedRank::State::kFormer: return {"former", "former"};
    case InspectedRank::State::kRunning: break;
  }
  // The letters of proc(5).
  switch (rank.process.state.empty() ? '?' : rank.process.state.front()) {
    case 'R': return {"running", "running"};
    case 'S':
    case 'I': return {"sleeping", "sleeping"};
    case 'D': return {"in I/O", "in_io"};
    case 'T': return {"stopped", "stopped"};
    case 't': return {"traced", "traced"};
    case 'Z':
    case 'X': return {"ended", "ended"};
    default: return {"-", "unknown"};
  }
}

bool is_alarming(const InspectedRank& rank) {
  return rank.state == InspectedRank::State::kNoAnswer ||
         (rank.state == InspectedRank::State::kRunning && rank.process.state == "T");
}

std::string tensors_text(const InspectedRank& rank) {
  if (rank.open_tensors == 0) return std::string(kUnknown);
  std::string name = printable_line(rank.oldest_tensor);
  if (name.size() > kMaxTensorName)
    name.resize(kMaxTensorName - incomplete_utf8_tail(name.substr(0, kMaxTensorName)));
  return std::to_string(rank.open_tensors) + (name.empty() ? "" : ": " + name);
}

/// "ranks 2, 3 and 7 more".
std::string cut_ranks_text(const std::vector<int>& ranks, std::int64_t number) {
  const auto more = number - std::ssize(ranks);
  return launcher::ranks_text(ranks) + (more > 0 ? " and " + std::to_string(more) + " more" : "");
}

std::string awaited_text(const InspectedWait& wait) {
  if (wait.missing.empty() && wait.unknown.empty()) return "nobody";
  std::string text;
  if (!wait.unknown.empty()) text = "perhaps " + cut_ranks_text(wait.unknown, wait.num_unknown);
  if (wait.missing.empty()) return text;
  return text + (text.empty() ? "" : "; ") + cut_ranks_text(wait.missing, wait.num_missing);
}

std::string gpus_text(const std::vector<int>& gpus) {
  std::vector<std::string> numbers;
  for (const int gpu : gpus) numbers.push_back(std::to_string(gpu));
  return join(numbers, ",");
}

const std::vector<std::string>& rank_headings() {
  static const std::vector<std::string> kRankHeadings = {
      "rank",    "host",    "pid",        "state",    "does", "for",   "waits for",
      "steps/s", "tensors", "last event", "CPU time", "RSS",  "cores", "GPU"};
  return kRankHeadings;
}

std::vector<std::string> row_of(const InspectedRank& rank, const JobInspection& job,
                                const TerminalStyle& style) {
  const std::string state = state_of(rank).text;
  const bool has_work = rank.work.kind != CurrentWork::Kind::kNone;
  std::vector<std::string> row{
      std::to_string(rank.rank),
      printable_line(job.nodes[rank.node].name),
      rank.pid > 0 ? std::to_string(rank.pid) : std::string(kUnknown),
      is_alarming(rank) ? style.alarm(state) : state,
      or_unknown(printable_line(launcher::work_text(rank.work))),
      has_work ? age_text(rank.work.seconds) : std::string(kUnknown),
      rank.wait < 0 ? std::string(kUnknown) : awaited_text(job.waits[rank.wait]),
      rank.steps_per_second < 0 ? std::string(kUnknown) : fmt::format("{:.2f}", rank.steps_per_second),
      tensors_text(rank),
      age_text(rank.last_event),
      rank.process.cpu_seconds < 0 ? std::string(kUnknown)
                                   : launcher::duration_text(rank.process.cpu_seconds),
      bytes_text(rank.process.resident_bytes),
      or_unknown(rank.cpus),
      or_unknown(gpus_text(rank.gpus))};
  return row;
}

/// Empties the columns in which all rows have no value; a table omits them.
void drop_unknown_columns(std::vector<std::vector<std::string>>& rows) {
  for (std::size_t column = 0; column < rows.front().size(); ++column) {
    const bool has_value =
        std::any_of(rows.begin() + 1, rows.end(), [&](const auto& row) { return row[column] != kUnknown; });
    for (auto& row : rows) {
      if (!has_value) row[column].clear();
    }
  }
}

std::string silence_text(const JobInspection& job, int node) {
  std::vector<int> ranks;
  for (const InspectedRank& rank : job.ranks) {
    if (rank.node == node) ranks.push_back(rank.rank);
  }
  return job.nodes[node].name + ": " + job.nodes[node].silence + "; what " + launcher::ranks_text(ranks) +
         (ranks.size() == 1 ? " does" : " do") + " is unknown";
}

Json number_or_null(double number) { return number < 0 ? Json(nullptr) : Json(number); }
Json count_or_null(std::int64_t number, std::int64_t least) {
  return number < least ? Json(nullptr) : Json(number);
}

const char* name_of_work(CurrentWork::Kind kind) {
  switch (kind) {
    case CurrentWork::Kind::kNone: return "none";
    case CurrentWork::Kind::kInit: return "init";
    case CurrentWork::Kind::kCall: return "call";
    case CurrentWork::Kind::kJoin: return "join";
    case CurrentWork::Kind::kTensor: return "tensor";
    case CurrentWork::Kind::kUserCode: return "user_code";
    case CurrentWork::Kind::kFinalized: return "finalized";
  }
  return "none";
}

Json job_json(const JobDescription& job) {
  return Json{{"id", job.id},
              {"name", job.name},
              {"command", job.command},
              {"head_host", job.head_host},
              {"head_pid", job.head_pid},
              {"num_ranks", job.num_ranks},
              {"scheduler_job", text_or_null(job.scheduler_job)},
              {"generation", job.generation < 0 ? Json(nullptr) : Json(job.generation)},
              {"hosts", job.hosts},
              {"began", job.began},
              {"age_seconds", job.age.value}};
}

Json work_json(const CurrentWork& work) {
  const bool has_call = !work.call.empty();
  return Json{
      {"kind", name_of_work(work.kind)},
      {"text", text_or_null(launcher::work_text(work))},
      {"seconds", work.kind == CurrentWork::Kind::kNone ? Json(nullptr) : Json(work.seconds.value)},
      {"call", text_or_null(work.call)},
      {"number", has_call ? Json(work.number) : Json(nullptr)},
      {"process_set", has_call || work.kind == CurrentWork::Kind::kJoin ? Json(work.set) : Json(nullptr)},
      {"peer", count_or_null(work.peer, 0)},
      {"tensor", text_or_null(work.tensor)}};
}

Json wait_json(const InspectedWait& wait) {
  // What has not answered may be missing, too: a reader that knows only this list finds it there.
  std::vector<int> missing = wait.unknown;
  missing.insert(missing.end(), wait.missing.begin(), wait.missing.end());
  missing.resize(std::min(missing.size(), InspectedWait::kMaxMissing));
  return Json{{"what", wait.what},
              {"sentence", wait.sentence},
              {"seconds", wait.seconds.value},
              {"num_waiting", wait.num_waiting},
              {"unknown", wait.unknown},
              {"num_unknown", wait.num_unknown},
              {"missing", missing},
              {"num_missing", wait.num_missing + wait.num_unknown}};
}

Json inspected_rank_json(const InspectedRank& rank, const JobInspection& job) {
  return Json{{"rank", rank.rank},
              {"host", job.nodes[rank.node].name},
              {"pid", count_or_null(rank.pid, 1)},
              {"state", state_of(rank).json},
              {"work", work_json(rank.work)},
              {"wait", count_or_null(rank.wait, 0)},
              {"steps_per_second", number_or_null(rank.steps_per_second)},
              {"open_tensors", rank.open_tensors},
              {"oldest_tensor", text_or_null(rank.oldest_tensor)},
              {"oldest_tensor_seconds",
               rank.open_tensors > 0 ? Json(rank.oldest_tensor_seconds.value) : Json(nullptr)},
              {"last_event_seconds", number_or_null(rank.last_event)},
              {"cpu_seconds", number_or_null(rank.process.cpu_seconds)},
              {"resident_bytes", count_or_null(rank.process.resident_bytes, 0)},
              {"peak_resident_bytes", count_or_null(rank.process.peak_resident_bytes, 0)},
              {"threads", count_or_null(rank.process.num_threads, 1)},
              {"cpus", text_or_null(rank.cpus)},
              {"gpus", rank.gpus}};
}

std::string json_line(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace

std::string inspection_text(const JobInspection& job, const TerminalStyle& style) {
  const std::string generation =
      job.job.generation < 0 ? "" : "generation " + std::to_string(job.job.generation) + ", ";
  std::string text =
      style.strong(printable_line(job.job.name)) +
      fmt::format(" (ddlrun {} on {}): {}{} on {}, since {}\n", job.job.head_pid,
                  printable_line(job.job.head_host), generation, counted(job.job.num_ranks, "rank"),
                  counted(job.nodes.size(), "node"), since_text(job.job)) +
      command_text(job.job.command) + "\n\n";
  std::vector<std::vector<std::string>> rows{rank_headings()};
  for (const InspectedRank& rank : job.ranks) rows.push_back(row_of(rank, job, style));
  drop_unknown_columns(rows);
  TextTable table;
  for (auto& row : rows) table.add(std::move(row));
  text += table.text();
  // What is not known comes first: it may be the cause of the rest.
  std::string silences;
  for (std::size_t node = 0; node < job.nodes.size(); ++node) {
    if (!job.nodes[node].silence.empty()) silences += printable_line(silence_text(job, node)) + "\n";
  }
  if (!silences.empty()) text += "\n" + silences;
  if (!job.waits.empty()) text += "\n";
  for (const InspectedWait& wait : job.waits) text += printable_line(wait.sentence) + "\n";
  return text;
}

std::string inspection_json(const JobInspection& job) {
  Json json{{"ddlrun", contract::kVersion}, {"kind", "inspection"}, {"job", job_json(job.job)}};
  json["nodes"] = Json::array();
  for (const launcher::InspectedNode& node : job.nodes)
    json["nodes"].push_back({{"name", node.name}, {"failure", text_or_null(node.silence)}});
  json["waits"] = Json::array();
  for (const InspectedWait& wait : job.waits) json["waits"].push_back(wait_json(wait));
  json["ranks"] = Json::array();
  for (const InspectedRank& rank : job.ranks) json["ranks"].push_back(inspected_rank_json(rank, job));
  return json_line(json);
}

std::string jobs_text(const std::vector<FoundJob>& jobs) {
  TextTable table;
  table.add({"pid", "name", "ranks", "hosts", "since"}, "command");
  for (const FoundJob& one : jobs) {
    if (!one.description) {
      table.add({std::to_string(one.pid)}, printable_line(one.description.error().message()));
      continue;
    }
    constexpr std::size_t kMaxHosts = 4;
    const JobDescription& job = *one.description;
    std::vector<std::string> hosts(job.hosts.begin(),
                                   job.hosts.begin() + std::min(job.hosts.size(), kMaxHosts));
    if (job.hosts.size() > kMaxHosts) hosts.push_back("+" + std::to_string(job.hosts.size() - kMaxHosts));
    table.add({std::to_string(one.pid), printable_line(job.name), std::to_string(job.num_ranks),
               printable_line(join(hosts, ",")), since_text(job)},
              command_text(job.command));
  }
  return table.text();
}

std::string jobs_json(const std::vector<FoundJob>& jobs) {
  Json json{{"ddlrun", contract::kVersion}, {"kind", "jobs"}};
  json["jobs"] = Json::array();
  for (const FoundJob& one : jobs) {
    Json job = one.description ? job_json(*one.description) : Json{{"id", one.id}, {"head_pid", one.pid}};
    job["failure"] = one.description ? Json(nullptr) : Json(one.description.error().message());
    json["jobs"].push_back(std::move(job));
  }
  return json_line(json);
}

std::string fitted(std::string_view text, std::size_t columns, std::size_t lines) {
  std::string result;
  std::size_t column = 0, line = 0;
  for (std::size_t at = 0; at < text.size() && line < lines; ++at) {
    const char c = text[at];
    if (c == '\n') {
      column = 0;
      ++line;
      if (line < lines) result += c;
    } else if (c == '\x1b') {
      // An attribute takes no room, and is kept also behind the end of the line: it may end one before it.
      const std::size_t end = std::min(text.find('m', at), text.size() - 1);
      result += text.substr(at, end + 1 - at);
      at = end;
    } else {
      const bool begins_character = (static_cast<unsigned char>(c) & 0xC0) != 0x80;
      if (begins_character) ++column;
      if (column <= columns) result += c;
    }
  }
  return result;
}

}  // namespace ddl::cli
