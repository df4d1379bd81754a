#include "runtime/support/fault_case.h"

#include <algorithm>
#include <numeric>

#include "runtime/support/expect.h"

namespace ddl::runtime::test {
namespace {

using conformance::expect_ok;

ddl_status make_and_free(FaultArguments& desk, ddl_status status, std::uint64_t made) {
  if (status != DDL_OK) return status;
  desk.made_size = ddl_process_set_size(desk.context, made);
  return ddl_process_set_free(desk.context, made);
}

/// To the next rank and from the previous one; every second rank receives first. A barrier follows, so that no rank
/// finishes before it has learnt of a failure of a rank with which it does not communicate.
ddl_status send_round(FaultArguments& d) {
  const int next = (d.rank + 1) % d.size, before = (d.rank + d.size - 1) % d.size;
  const auto receive = [&] { return ddl_recv(d.context, d.recv, d.count, DDL_FLOAT32, before, &d.options); };
  ddl_status status = d.rank % 2 == 1 ? receive() : DDL_OK;
  if (status == DDL_OK) status = ddl_send(d.context, d.send, d.count, DDL_FLOAT32, next, &d.options);
  if (status == DDL_OK && d.rank % 2 == 0) status = receive();
  return status == DDL_OK ? ddl_barrier(d.context, &d.options) : status;
}

std::vector<FaultRow> reductions() {
  return {
      {"allreduce", CallKind::kAllreduce, true,
       [](FaultArguments& d) {
         return ddl_allreduce(d.context, d.send, d.recv, d.count, DDL_FLOAT32, DDL_SUM, &d.options);
       },
       [](const FaultArguments& d) {
         return d.received(0, d.count, [&](std::uint64_t i) { return FaultArguments::sum(d.size, i); });
       }},
      {kAdasum, CallKind::kAllreduce, true,
       [](FaultArguments& d) {
         // What all ranks give alike is the result.
         for (std::uint64_t i = 0; i < d.count; ++i) d.recv[i] = FaultArguments::value(1, i);
         return ddl_allreduce(d.context, d.recv, d.recv, d.count, DDL_FLOAT32, DDL_ADASUM, &d.options);
       },
       [](const FaultArguments& d) {
         return d.received(0, d.count, [](std::uint64_t i) { return FaultArguments::value(1, i); });
       }},
      {kRepeated, CallKind::kAllreduce, false,
       [](FaultArguments& d) {
         ddl_status status = DDL_OK;
         for (int i = 0; i < 3 && status == DDL_OK; ++i)
           status = ddl_allreduce(d.context, d.send, d.recv, 1, DDL_FLOAT32, DDL_SUM, nullptr);
         return status;
       },
       [](const FaultArguments& d) { return d.recv[0] == FaultArguments::sum(d.size, 0); }},
      {"reduce", CallKind::kReduce, true,
       [](FaultArguments& d) {
         return ddl_reduce(d.context, d.send, d.recv, d.count, DDL_FLOAT32, DDL_SUM, d.root(), &d.options);
       },
       [](const FaultArguments& d) {
         return d.rank != d.root() ||
                d.received(0, d.count, [&](std::uint64_t i) { return FaultArguments::sum(d.size, i); });
       }},
      {"reduce_scatter", CallKind::kReduceScatter, true,
       [](FaultArguments& d) {
         return ddl_reduce_scatter(d.context, d.send, d.recv, d.counts.data(), DDL_FLOAT32, DDL_SUM,
                                   &d.options);
       },
       [](const FaultArguments& d) {
         const std::uint64_t before = d.count * static_cast<std::uint64_t>(d.rank);
         return d.received(0, d.count,
                           [&](std::uint64_t i) { return FaultArguments::sum(d.size, before + i); });
       }},
      {"scan", CallKind::kScan, false,
       [](FaultArguments& d) {
         return ddl_scan(d.context, d.send, d.recv, d.count, DDL_FLOAT32, DDL_SUM, &d.options);
       },
       [](const FaultArguments& d) {
         return d.received(0, d.count, [&](std::uint64_t i) { return FaultArguments::sum(d.rank + 1, i); });
       }},
  };
}

std::vector<FaultRow> shared_moves() {
  const auto all_firsts = [](const FaultArguments& d) { return d.received_from_all(FaultArguments::value); };
  return {
      {"broadcast", CallKind::kBroadcast, true,
       [](FaultArguments& d) {
         if (d.rank == d.root()) std::copy_n(d.send, d.count, d.recv);
         return ddl_broadcast(d.context, d.recv, d.count, DDL_FLOAT32, d.root(), &d.options);
       },
       [](const FaultArguments& d) {
         return d.received(0, d.count, [&](std::uint64_t i) { return FaultArguments::value(d.root(), i); });
       }},
      {"allgather", CallKind::kAllgather, true,
       [](FaultArguments& d) {
         return ddl_allgather(d.context, d.send, d.recv, d.count, DDL_FLOAT32, &d.options);
       },
       all_firsts},
      {"allgatherv", CallKind::kAllgatherv, true,
       [](FaultArguments& d) {
         return ddl_allgatherv(d.context, d.send, d.recv, d.counts.data(), DDL_FLOAT32, &d.options);
       },
       all_firsts},
      {"gather", CallKind::kGather, true,
       [](FaultArguments& d) {
         return ddl_gather(d.context, d.send, d.recv, d.count, DDL_FLOAT32, d.root(), &d.options);
       },
       [=](const FaultArguments& d) { return d.rank != d.root() || all_firsts(d); }},
  };
}

std::vector<FaultRow> other_moves() {
  const auto all_own = [](const FaultArguments& d) {
    const std::uint64_t before = d.count * static_cast<std::uint64_t>(d.rank);
    return d.received_from_all(
        [&](int from, std::uint64_t i) { return FaultArguments::value(from, before + i); });
  };
  return {
      {"scatter", CallKind::kScatter, true,
       [](FaultArguments& d) {
         return ddl_scatter(d.context, d.send, d.recv, d.count, DDL_FLOAT32, d.root(), &d.options);
       },
       [](const FaultArguments& d) {
         const std::uint64_t before = d.count * static_cast<std::uint64_t>(d.rank);
         return d.received(0, d.count,
                           [&](std::uint64_t i) { return FaultArguments::value(d.root(), before + i); });
       }},
      {"alltoall", CallKind::kAlltoall, true,
       [](FaultArguments& d) {
         return ddl_alltoall(d.context, d.send, d.recv, d.count, DDL_FLOAT32, &d.options);
       },
       all_own},
      {"alltoallv", CallKind::kAlltoallv, false,
       [](FaultArguments& d) {
         return ddl_alltoallv(d.context, d.send, d.counts.data(), d.recv,
                              d.count * static_cast<std::uint64_t>(d.size), d.received_counts.data(),
                              DDL_FLOAT32, &d.options);
       },
       [=](const FaultArguments& d) { return d.received_counts == d.counts && all_own(d); }},
      {"transfer", CallKind::kTransfer, true, send_round,
       [](const FaultArguments& d) {
         const int before = (d.rank + d.size - 1) % d.size;
         return d.received(0, d.count, [&](std::uint64_t i) { return FaultArguments::value(before, i); });
       }},
  };
}

std::vector<FaultRow> without_data() {
  return {
      {"joining", CallKind::kNone, false,
       [](FaultArguments& d) { return ddl_barrier(d.context, &d.options); },
       [](const FaultArguments&) { return true; }},
      {"barrier", CallKind::kBarrier, false,
       [](FaultArguments& d) { return ddl_barrier(d.context, &d.options); },
       [](const FaultArguments&) { return true; }},
      {"starting a timeline", CallKind::kTimeline, false,
       [](FaultArguments& d) {
         // Nothing is recorded, and no file is left behind.
         const ddl_status status = ddl_timeline_start(d.context, "/proc/timeline.json", 0);
         return status == DDL_ERROR_INVALID_ARGUMENT ? ddl_status{DDL_OK} : status;
       },
       [](const FaultArguments&) { return true; }},
      {"making a process set", CallKind::kMakeSets, false,
       [](FaultArguments& d) {
         // A list names ranks of the world; one rank stays outside.
         std::vector<std::int32_t> ranks(static_cast<std::size_t>(d.size - 1));
         std::iota(ranks.begin(), ranks.end(), 1);
         std::reverse(ranks.begin(), ranks.end());
         std::uint64_t made = DDL_NO_PROCESS_SET;
         const ddl_status status =
             ddl_process_set_create(d.context, ranks.data(), static_cast<std::int32_t>(ranks.size()), &made);
         return make_and_free(d, status, made);
       },
       [](const FaultArguments& d) { return d.made_size == (d.rank == 0 ? -1 : d.size - 1); }},
      {"splitting a process set", CallKind::kMakeSets, false,
       [](FaultArguments& d) {
         std::uint64_t made = DDL_NO_PROCESS_SET;
         const ddl_status status = ddl_process_set_split(d.context, d.set, 0, -d.rank, &made);
         return make_and_free(d, status, made);
       },
       [](const FaultArguments& d) { return d.made_size == d.size; }},
  };
}

/// The algorithms that can be named for a collective on this number of hosts; kAuto alone if there is no choice.
std::vector<Algorithm> algorithms_of(CallKind kind, int hosts) {
  const Situation situation{kind, 1, hosts, 1};
  if (choose(situation) == Algorithm::kAuto) return {Algorithm::kAuto};
  std::vector<Algorithm> ways;
  for (int number = 1; number <= UINT8_MAX; ++number) {
    const auto algorithm = static_cast<Algorithm>(number);
    if (algorithm_name(algorithm) == std::string("unknown algorithm")) break;
    Call call;
    call.kind = kind;
    call.algorithm = algorithm;
    // Skips an algorithm for another number of hosts, or for another collective.
    const auto named = std::string(call_kind_name(kind)) + "=" + algorithm_name(algorithm);
    if (algorithm_of(call, situation) == algorithm && AlgorithmOverrides::parse(named))
      ways.push_back(algorithm);
  }
  return ways;
}

void add_scenes(std::vector<FaultScene>& scenes, const Hosts& hosts, int ranks, bool in_set) {
  const int host_count = hosts.empty() ? 1 : static_cast<int>(hosts.size());
  for (const FaultRow& row : fault_rows()) {
    FaultScene scene;
    scene.row = &row;
    scene.hosts = hosts;
    scene.ranks = ranks;
    scene.in_set = in_set;
    // A job is joined once, and a list of ranks and a timeline refer to the world.
    if (in_set && (scene.joins() || row.name == "making a process set" || row.kind == CallKind::kTimeline))
      continue;
    // Sets and numbers of hosts differ for how ranks agree, which the other row of named tensors shows.
    if (row.name == kOtherNamedTensors && (in_set || host_count > 2)) continue;
    const bool has_algorithms = row.name != kAdasum && row.name != kRepeated;
    if (row.name == kRepeated && !hosts.empty()) continue;  // between hosts no call takes the shorter way
    if (!has_algorithms && (in_set || host_count > 2)) continue;  // its steps have rows of their own
    for (const Algorithm algorithm :
         has_algorithms ? algorithms_of(row.kind, host_count) : std::vector{Algorithm::kAuto}) {
      scene.algorithm = algorithm;
      scenes.push_back(scene);
    }
    if (!hosts.empty() || !row.can_be_direct) continue;
    scene.algorithm = Algorithm::kAuto;
    scene.in_heap = true;
    scenes.push_back(scene);
  }
}

}  // namespace

FaultArguments::FaultArguments(ddl_context* desk_context, std::uint64_t desk_set, std::uint64_t desk_count,
                               bool in_heap, PassedPoints& desk_passed)
    : context(desk_context),
      set(desk_set),
      rank(ddl_process_set_rank(desk_context, desk_set)),
      size(ddl_process_set_size(desk_context, desk_set)),
      count(desk_count),
      counts(static_cast<std::size_t>(size), desk_count),
      received_counts(counts.size()),
      passed(desk_passed) {
  options.process_set = set;
  const std::uint64_t length = count * static_cast<std::uint64_t>(size);
  if (in_heap) {
    void* memory = nullptr;
    expect_ok(ddl_alloc(context, length * sizeof(float), &memory), "alloc");
    send = static_cast<float*>(memory);
    expect_ok(ddl_alloc(context, length * sizeof(float), &memory), "alloc");
    recv = static_cast<float*>(memory);
  } else {
    private_send_.resize(length);
    private_recv_.resize(length);
    send = private_send_.data();
    recv = private_recv_.data();
  }
  for (std::uint64_t i = 0; i < length; ++i) send[i] = value(rank, i);
}

bool FaultArguments::received(std::uint64_t first, std::uint64_t length,
                              const std::function<float(std::uint64_t)>& expected) const {
  for (std::uint64_t i = 0; i < length; ++i) {
    if (recv[first + i] != expected(i)) return false;
  }
  return true;
}

bool FaultArguments::received_from_all(const std::function<float(int, std::uint64_t)>& expected) const {
  for (int from = 0; from < size; ++from) {
    if (!received(static_cast<std::uint64_t>(from) * count, count,
                  [&](std::uint64_t i) { return expected(from, i); }))
      return false;
  }
  return true;
}

const std::vector<FaultRow>& fault_rows() {
  static const std::vector<FaultRow> rows = [] {
    std::vector<FaultRow> all = reductions();
    for (auto& part : {shared_moves(), other_moves(), without_data(), named_fault_rows()})
      all.insert(all.end(), part.begin(), part.end());
    return all;
  }();
  return rows;
}

std::string FaultScene::name() const {
  std::string text = row->name;
  if (algorithm != Algorithm::kAuto) text += std::string(" by ") + algorithm_name(algorithm);
  if (in_heap) text += " on the shared heap";
  text += hosts.empty() ? " on one host" : " on " + std::to_string(hosts.size()) + " hosts";
  if (in_set) text += ", in a process set";
  if (is_first) text += ", for the first time";
  return text;
}

std::vector<FaultScene> fault_scenes() {
  std::vector<FaultScene> scenes;
  for (const bool in_set : {false, true}) {
    add_scenes(scenes, {}, 3, in_set);
    // The third rank has no partner of its local rank on the other host.
    add_scenes(scenes, {{0, 2}, {1}}, 3, in_set);
  }
  add_scenes(scenes, {{0}, {1}, {2}}, 3, false);
  // The first named tensors of a process set, for which its ranks connect once more.
  std::vector<FaultScene> first;
  for (const FaultScene& scene : scenes) {
    if (scene.row->name == "named tensors") first.push_back(scene);
  }
  for (FaultScene& scene : first) {
    scene.is_first = true;
    scenes.push_back(scene);
  }
  // More hosts than kMeshHosts, so not all are connected from the start.
  std::vector<FaultScene> many;
  constexpr int kHosts = 17;
  add_scenes(many, hosts_of_sizes(std::vector<int>(kHosts, 1)), kHosts, false);
  for (FaultScene& scene : many) {
    const bool connects = scene.row->kind == CallKind::kAllgather || scene.algorithm == Algorithm::kUnits;
    if (!connects || scene.row->kind == CallKind::kReduce) continue;
    scene.is_first = true;
    scenes.push_back(scene);
  }
  return scenes;
}

}  // namespace ddl::runtime::test
