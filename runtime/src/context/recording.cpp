#include "runtime/src/context/recording.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>

#include <nlohmann/json.hpp>

#include "runtime/src/context/set_creation.h"

namespace ddl::runtime {
namespace {

using Json = nlohmann::json;
using timeline::RankTrace;
using timeline::RingSnapshot;

/// A comparison of clocks takes milliseconds, unless the other rank's thread gets no CPU.
constexpr std::chrono::seconds kComparison{1};

std::string text_of(const Json& json) { return json.dump(-1, ' ', true, Json::error_handler_t::replace); }

/// What a rank says of its ring, read at this time of its clock; its events follow in a call of their own.
Json description_of(const RingSnapshot& ring, std::int64_t read_at) {
  Json samples = Json::array();
  for (const contract::ClockSample& one : ring.samples) samples.push_back({one.at, one.offset, one.bound});
  return {{"events", ring.events.size()}, {"count", ring.count},     {"steps", ring.steps},
          {"read_at", read_at},           {"peer", ring.clock_peer}, {"samples", std::move(samples)}};
}

/// An exception unless it is an integer: the library would convert a float, also one that no integer can hold.
template <class T>
void read_integer(const Json& json, T& value) {
  value = static_cast<T>(json.get_ref<const Json::number_integer_t&>());
}

void describe(const Json& json, RankTrace& trace) {
  RingSnapshot& ring = trace.ring;
  read_integer(json.at("read_at"), trace.read_at);
  read_integer(json.at("count"), ring.count);
  read_integer(json.at("steps"), ring.steps);
  read_integer(json.at("peer"), ring.clock_peer);
  for (const Json& one : json.at("samples")) {
    contract::ClockSample& sample = ring.samples.emplace_back();
    read_integer(one.at(0), sample.at);
    read_integer(one.at(1), sample.offset);
    read_integer(one.at(2), sample.bound);
  }
}

void note(const std::string& sentence) { std::fprintf(stderr, "libddl: %s\n", sentence.c_str()); }

}  // namespace

tl::unexpected<Failure> Recording::failure(const Error& error) const {
  return fail(world_.abort().is_raised() ? world_.abort().describe(world_.call(), true) : to_failure(error));
}

Outcome Recording::meet(bool starts, CallDeadline deadline) {
  Request compare;
  compare.call.kind = CallKind::kTimeline;
  compare.call.count = starts ? 1 : 0;
  return world_.collective(compare, deadline);
}

Outcome Recording::start(const std::string& path, std::uint64_t max_bytes, CallDeadline deadline) {
  if (is_on_) return fail(DDL_ERROR_INVALID_ARGUMENT, "a timeline is recorded already");
  if (auto met = meet(true, deadline); !met) return met;
  std::string error;
  if (world_.rank() == 0) {
    auto file = timeline::TraceFile::create(path);
    if (file) {
      file_.emplace(std::move(*file));
    } else {
      error = file.error().message();
    }
  }
  const std::uint64_t before = log_.ring().count;
  const auto texts = gather_texts(world_,
                                  text_of({{"bytes", max_bytes},
                                           {"error", error},
                                           {"host", world_.self().host},
                                           {"pid", std::int64_t{::getpid()}},
                                           {"first", before}}),
                                  deadline);
  if (!texts) return failure(texts.error());
  ranks_.clear();
  first_.clear();
  for (const std::string& text : *texts) {
    const Json json = Json::parse(text);
    if (ranks_.empty()) {
      error = json.at("error");
      max_bytes_ = json.at("bytes");
    }
    ranks_.push_back({json.at("host"), json.at("pid")});
    first_.push_back(json.at("first"));
  }
  if (!error.empty()) return fail(DDL_ERROR_INVALID_ARGUMENT, "no timeline is recorded: rank 0: " + error);
  log_.record(timeline::events_of_rank(max_bytes_, ranks_.size()));
  path_ = path;
  is_on_ = true;
  return {};
}

RingSnapshot Recording::read(const contract::EventRing& ring, std::span<const std::byte> memory,
                             std::uint64_t first) const {
  RingSnapshot snapshot =
      timeline::read_ring(ring, memory, timeline::events_of_rank(max_bytes_, ranks_.size()));
  std::erase_if(snapshot.events, [first](const contract::Event& event) { return event.number <= first; });
  snapshot.count -= std::min(first, snapshot.count);
  return snapshot;
}

RankTrace Recording::trace_of(int rank) const {
  const Rank& known = ranks_[rank];
  RankTrace trace;
  trace.rank = rank;
  trace.host = known.host;
  trace.pid = known.pid;
  return trace;
}

Outcome Recording::stop(CallDeadline deadline) {
  if (!is_on_) return fail(DDL_ERROR_INVALID_ARGUMENT, "no timeline is recorded");
  if (auto met = meet(false, deadline); !met) return met;
  log_.compare_clock_now(Deadline::after(kComparison));
  log_.stop_recording();
  const RingSnapshot own = read(log_.ring(), log_.memory(), first_[world_.rank()]);
  const auto texts = gather_texts(world_, text_of(description_of(own, log_.exact_now())), deadline);
  if (!texts) return failure(texts.error());
  std::vector<RankTrace> ranks;
  std::vector<std::uint64_t> events;
  for (const std::string& text : *texts) {
    const Json json = Json::parse(text);
    RankTrace& trace = ranks.emplace_back(trace_of(std::ssize(ranks)));
    describe(json, trace);
    read_integer(json.at("events"), events.emplace_back());
  }
  if (auto collected = collect(own, ranks, events, deadline); !collected) return collected;
  is_on_ = false;
  return world_.rank() == 0 ? write(std::move(ranks)) : Outcome();
}

Outcome Recording::collect(const RingSnapshot& own, std::vector<RankTrace>& ranks,
                           const std::vector<std::uint64_t>& events, CallDeadline deadline) {
  std::uint64_t total = 0;
  for (const std::uint64_t count : events) total += world_.rank() == 0 ? count : 0;
  std::vector<contract::Event> all(total);
  std::vector<std::uint64_t> to(ranks.size(), 0), from(ranks.size(), 0);
  to.front() = own.events.size() * sizeof(contract::Event);
  Request request;
  request.call = make_call(CallKind::kAlltoallv, 0, DDL_UINT8);
  request.send = reinterpret_cast<const std::byte*>(own.events.data());
  request.recv = reinterpret_cast<std::byte*>(all.data());
  request.counts = to;
  request.recv_capacity = total * sizeof(contract::Event);
  request.recv_counts = from.data();
  request.job_ranks = world_.job_ranks();
  if (auto moved = world_.collective(request, deadline); !moved) return moved;
  auto next = all.begin();
  for (std::size_t rank = 0; rank < ranks.size() && world_.rank() == 0; ++rank) {
    const auto count = static_cast<std::ptrdiff_t>(events[rank]);
    ranks[rank].ring.events.assign(next, next + count);
    next += count;
  }
  return {};
}

Outcome Recording::salvage(const std::string& why) {
  if (!std::exchange(is_on_, false)) return {};
  log_.stop_recording();
  if (!file_) return {};
  std::vector<RankTrace> ranks;
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
    RankTrace& trace = ranks.emplace_back(trace_of(static_cast<int>(rank)));
    trace.fate = why;
    trace.missing = why + ", and rank 0 does not see its memory";
  }
  const std::vector<int>& local = world_.membership().layout.local();
  for (std::size_t index = 0; index < local.size(); ++index) {
    const auto rank = static_cast<std::size_t>(local[index]);
    const std::span<const std::byte> memory =
        rank == 0 ? log_.memory() : world_.segment().ring(static_cast<int>(index));
    const contract::EventRing* const ring = timeline::find_ring(memory);
    if (ring == nullptr) continue;
    ranks[rank].missing = "";
    ranks[rank].ring = read(*ring, memory, first_[rank]);
    ranks[rank].read_at = log_.exact_now();
  }
  return write(std::move(ranks));
}

Outcome Recording::write(std::vector<RankTrace> ranks) {
  const auto& hosts = world_.membership().layout.hosts;
  std::vector<timeline::HostClock> clocks(hosts.size());
  for (std::size_t host = 0; host < hosts.size(); ++host) {
    for (const int rank : hosts[host]) clocks[host].add(rank, ranks[rank].ring);
  }
  const timeline::JobClocks aligned = timeline::align_clocks(clocks);
  timeline::TraceJob job;
  for (std::size_t host = 0; host < hosts.size(); ++host) {
    job.hosts.push_back({ranks[hosts[host].front()].host, aligned.hosts[host]});
    for (const int rank : hosts[host]) ranks[rank].clock = aligned.hosts[host];
  }
  job.ranks = ranks.size();
  job.origin = aligned.origin;
  job.max_bytes = max_bytes_;
  timeline::TraceFile file = std::move(*file_);
  file_.reset();
  Status written = file.begin(job);
  for (std::size_t rank = 0; rank < ranks.size() && written; ++rank) written = file.add(ranks[rank]);
  if (!written) return fail(to_failure(written.error()));
  DDL_ASSIGN(sentences, file.finish().map_error(to_failure));
  for (const std::string& sentence : sentences) note(sentence);
  return {};
}

}  // namespace ddl::runtime
