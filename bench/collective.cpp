#include "bench/collective.h"

namespace ddl::bench {

const std::vector<Collective>& all_collectives() {
  using enum Collective;
  static const std::vector<Collective> all = {kAllreduce, kAllgather, kAlltoall, kBroadcast, kReduceScatter};
  return all;
}

const char* name_of(Collective what) {
  switch (what) {
    case Collective::kAllreduce: return "allreduce";
    case Collective::kAllgather: return "allgather";
    case Collective::kAlltoall: return "alltoall";
    case Collective::kBroadcast: return "broadcast";
    case Collective::kReduceScatter: return "reduce-scatter";
  }
  return "";
}

std::optional<Collective> parse_collective(std::string_view name) {
  for (const Collective what : all_collectives()) {
    if (name == name_of(what)) return what;
  }
  return std::nullopt;
}

const char* describe(Collective what) {
  switch (what) {
    case Collective::kAllreduce: return "f32 sum in place";
    case Collective::kAllgather: return "f32, the size is that of the result";
    case Collective::kAlltoall: return "f32, the size is that of all parts of a rank";
    case Collective::kBroadcast: return "f32 in place";
    case Collective::kReduceScatter: return "f32 sum, the size is that of the input";
  }
  return "";
}

bool is_in_place(Collective what) { return what == Collective::kAllreduce || what == Collective::kBroadcast; }

std::uint64_t whole_bytes(Collective what, std::uint64_t wanted, int ranks) {
  const std::uint64_t shares = shape_of(what, ranks).has_shares ? static_cast<std::uint64_t>(ranks) : 1;
  const std::uint64_t step = shares * sizeof(float);
  return (wanted + step - 1) / step * step;
}

Shape shape_of(Collective what, int ranks) {
  switch (what) {
    case Collective::kAllreduce:
    case Collective::kBroadcast: return {1, 1, false};
    case Collective::kAllgather: return {1, ranks, true};
    case Collective::kAlltoall: return {ranks, ranks, true};
    case Collective::kReduceScatter: return {ranks, 1, true};
  }
  return {};
}

float sent_value(Collective what, int rank, int ranks, int part, int turn) {
  switch (what) {
    case Collective::kAllreduce:
    case Collective::kAllgather: return static_cast<float>(turn + rank + 1);
    case Collective::kBroadcast: return static_cast<float>(rank == 0 ? turn + 1 : -1);
    case Collective::kAlltoall: return static_cast<float>(turn + rank * ranks + part);
    case Collective::kReduceScatter: return static_cast<float>(turn + rank + part + 1);
  }
  return 0;
}

float expected_value(Collective what, int rank, int ranks, int part, int turn) {
  const int sum = ranks * turn + ranks * (ranks + 1) / 2;
  switch (what) {
    case Collective::kAllreduce: return static_cast<float>(sum);
    case Collective::kAllgather: return static_cast<float>(turn + part + 1);
    case Collective::kBroadcast: return static_cast<float>(turn + 1);
    case Collective::kAlltoall: return static_cast<float>(turn + part * ranks + rank);
    case Collective::kReduceScatter: return static_cast<float>(sum + ranks * rank);
  }
  return 0;
}

double least_sent(Collective what, int hosts) {
  const double others = static_cast<double>(hosts - 1) / hosts;
  switch (what) {
    case Collective::kAllreduce: return 2 * others;
    case Collective::kAllgather:
    case Collective::kAlltoall:
    case Collective::kReduceScatter: return others;
    case Collective::kBroadcast: return hosts > 1 ? 1 : 0;
  }
  return 0;
}

}  // namespace ddl::bench
