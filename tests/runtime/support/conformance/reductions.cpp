#include <numeric>

#include "runtime/support/conformance/fenced.h"
#include "runtime/support/conformance/trial.h"
#include "runtime/support/conformance/types.h"

namespace ddl::conformance {
namespace {

ddl_status call(const Place& place, const Trial& trial, std::uint64_t count, const void* send, void* recv) {
  ddl_call_options options = place.options();
  options.prescale = trial.scales.before;
  options.postscale = trial.scales.after;
  switch (trial.collective) {
    case Collective::kAllreduce:
      return ddl_allreduce(place.context, send, recv, count, trial.dtype, trial.op, &options);
    case Collective::kReduce:
      return ddl_reduce(place.context, send, recv, count, trial.dtype, trial.op, trial.root, &options);
    case Collective::kReduceScatter:
      return ddl_reduce_scatter(place.context, send, recv, trial.counts.data(), trial.dtype, trial.op,
                                &options);
    case Collective::kScan:
      return ddl_scan(place.context, send, recv, count, trial.dtype, trial.op, &options);
    default: return DDL_ERROR_INTERNAL;
  }
}

template <class T>
void check_of(const Place& place, const Trial& trial) {
  const std::string what = describe(place, trial);
  const bool scatters = trial.collective == Collective::kReduceScatter;
  const std::uint64_t count =
      scatters ? std::accumulate(trial.counts.begin(), trial.counts.end(), std::uint64_t{0}) : trial.count;
  // The part of the result that this rank receives.
  const auto own = static_cast<std::size_t>(place.rank);
  const auto first_count = trial.counts.begin();
  const std::uint64_t offset =
      scatters ? std::accumulate(first_count, first_count + place.rank, std::uint64_t{0}) : 0;
  const bool receives = trial.collective != Collective::kReduce || place.rank == trial.root;
  std::vector<T> wanted(scatters ? trial.counts[own] : receives ? count : 0);
  for (std::uint64_t e = 0; e < wanted.size(); ++e) {
    wanted[e] = trial.collective == Collective::kScan
                    ? scanned_element<T>(trial.op, place.rank, e, trial.seed, trial.scales)
                    : reduced_element<T>(trial.op, place.groups, offset + e, trial.seed, trial.scales);
  }
  const std::vector<T> input = input_of<T>(place.rank, count, trial.seed);

  if (trial.buffers != Buffers::kInPlace) {
    Fenced<T> send(input, trial.shift, heap_of(place, trial)),
        recv(wanted.size(), trial.shift, heap_of(place, trial));
    // A rank that receives nothing needs no buffer.
    T* target = receives ? recv.data() : nullptr;
    expect_ok(call(place, trial, count, send.data(), target), what);
    expect_bits(recv, wanted, what);
    expect_bits(send, input, what + ": changed its input");
  }
  if (trial.buffers != Buffers::kApart) {
    Fenced<T> both(input, trial.shift, heap_of(place, trial));
    expect_ok(call(place, trial, count, both.data(), both.data() + offset), what + ", in place");
    std::vector<T> after = input;
    std::copy(wanted.begin(), wanted.end(), after.begin() + static_cast<std::ptrdiff_t>(offset));
    expect_bits(both, after, what + ", in place");
  }
}

}  // namespace

void check_reduction(const Place& place, const Trial& trial) {
  with_type(trial.dtype, [&]<class T>() { check_of<T>(place, trial); });
}

}  // namespace ddl::conformance
