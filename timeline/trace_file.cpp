#include "timeline/trace_file.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/text.h"
#include "contract/version.h"
#include "timeline/json_text.h"

namespace ddl::timeline {
namespace {

std::uint64_t less(std::uint64_t a, std::uint64_t b) { return a > b ? a - b : 0; }

/// Of a list.
void begin_item(std::string& list) {
  if (!list.empty()) list += ",\n";
}

void append_host(std::string& text, const TraceHost& host) {
  JsonObject object(text);
  object.add("name", host.name).add("is_aligned", host.clock.is_aligned());
  if (host.clock.is_aligned()) {
    object.add("offset_ns", host.clock.offset()).add_decimal("drift_ppm", host.clock.drift_ppm());
    object.add_microseconds("bound_us", host.clock.bound())
        .add("samples", std::uint64_t{host.clock.samples()});
  } else {
    object.add("reason", host.clock.reason());
  }
  object.close();
}

/// "the times of node3 and 2 more hosts cannot be compared ...: its clock was not ..."; "" if all can.
std::string unaligned_hosts(const std::vector<TraceHost>& hosts) {
  const auto is_unaligned = [](const TraceHost& host) { return !host.clock.is_aligned(); };
  const auto first = std::find_if(hosts.begin(), hosts.end(), is_unaligned);
  if (first == hosts.end()) return "";
  const auto more = std::count_if(first + 1, hosts.end(), is_unaligned);
  std::string text = "the times of " + first->name;
  if (more != 0) text += " and " + counted(more, "more host");
  return text + " cannot be compared with those of other hosts: " + first->clock.reason();
}

}  // namespace

Result<TraceFile> TraceFile::create(const std::string& path, const std::string& zlib) {
  DDL_ASSIGN(file, DraftFile::plan(path, zlib));
  return TraceFile(std::move(file));
}

Status TraceFile::begin(const TraceJob& job) {
  for (const TraceHost& host : job.hosts) {
    begin_item(hosts_);
    append_host(hosts_, host);
  }
  unaligned_ = unaligned_hosts(job.hosts);
  origin_ = job.origin;
  max_bytes_ = job.max_bytes;
  constexpr std::uint64_t kRest = 1024;  // of the file, besides hosts and ranks
  max_of_rank_ = less(job.max_bytes, hosts_.size() + kRest) / std::max<std::size_t>(job.ranks, 1);
  DDL_TRY(file_->open());
  return file_->write("{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n");
}

Status TraceFile::add(const RankTrace& rank) {
  constexpr std::uint64_t kIncomplete = 150;  // the most that is said about dropped events
  std::uint64_t max_bytes = less(max_of_rank_, kIncomplete);
  if (!rank.missing.empty()) {
    const std::size_t before = missing_.size();
    begin_item(missing_);
    JsonObject(missing_).add("rank", std::int64_t{rank.rank}).add("reason", rank.missing).close();
    max_bytes = less(max_bytes, missing_.size() - before);
  }
  const RankEvents events = trace_events(rank, origin_, max_bytes);
  const std::uint64_t in_ring = rank.ring.events.size();
  constexpr std::uint64_t kMost = std::uint64_t{1} << 48;  // more is garbage, and is not to overflow the sums
  const std::uint64_t overwritten = std::min(less(rank.ring.count, in_ring), kMost);
  if (overwritten != 0 || events.dropped != 0) {
    begin_item(incomplete_);
    JsonObject object(incomplete_);
    object.add("rank", std::int64_t{rank.rank}).add("events", in_ring + overwritten);
    object.add("overwritten", overwritten).add("dropped", std::uint64_t{events.dropped}).close();
  }
  seen_ += in_ring + overwritten;
  overwritten_ += overwritten;
  dropped_ += events.dropped;
  if (events.dropped != 0) ++ranks_dropped_;
  if (std::exchange(has_ranks_, true)) DDL_TRY(file_->write(",\n"));
  return file_->write(events.text);
}

Result<std::vector<std::string>> TraceFile::finish() {
  std::string text = "\n],\"otherData\":";
  JsonObject other(text);
  other.add("version", contract::kVersion);
  other.add("origin_ns", origin_);
  const auto add_list = [&](std::string_view key, const std::string& list) {
    other.begin_member(key);
    text += "[" + list + "]";
  };
  add_list("hosts", hosts_);
  add_list("incomplete_ranks", incomplete_);
  add_list("missing_ranks", missing_);
  other.close();
  text += "}\n";
  DDL_TRY(file_->write(text));
  DDL_TRY(file_->finish());

  std::vector<std::string> notes;
  const std::string of = " of " + counted(static_cast<std::int64_t>(seen_), "event");
  if (dropped_ != 0) {
    notes.push_back("the oldest " + std::to_string(dropped_) + of + " were dropped, on " +
                    counted(static_cast<std::int64_t>(ranks_dropped_), "rank") +
                    ", so that the timeline has at most " + std::to_string(max_bytes_) + " bytes");
  }
  if (overwritten_ != 0) {
    notes.push_back("the oldest " + std::to_string(overwritten_) + of +
                    " are not in the timeline: ranks keep only their latest ones");
  }
  if (!unaligned_.empty()) notes.push_back(unaligned_);
  return notes;
}

}  // namespace ddl::timeline
