#include <numeric>

#include "runtime/support/conformance.h"
#include "runtime/support/conformance/fenced.h"
#include "runtime/support/conformance/trial.h"
#include "runtime/support/conformance/types.h"

namespace ddl::conformance {
namespace {

ddl_status call(const Communicator& comm, const Trial& trial, std::uint64_t count, const void* send,
                void* recv) {
  ddl_call_options options = comm.options();
  options.prescale = trial.scales.before;
  options.postscale = trial.scales.after;
  switch (trial.collective) {
    case Collective::kAllreduce:
      return ddl_allreduce(comm.context, send, recv, count, trial.dtype, trial.op, &options);
    case Collective::kReduce:
      return ddl_reduce(comm.context, send, recv, count, trial.dtype, trial.op, trial.root, &options);
    case Collective::kReduceScatter:
      return ddl_reduce_scatter(comm.context, send, recv, trial.counts.data(), trial.dtype, trial.op,
                                &options);
    case Collective::kScan: return ddl_scan(comm.context, send, recv, count, trial.dtype, trial.op, &options);
    default: return DDL_ERROR_INTERNAL;
  }
}

template <class T>
void expect_result(Fenced<T>& got, const std::vector<T>& wanted, const Trial& trial,
                   const std::string& what) {
  const Scales& scales = trial.scales;
  const bool is_scaled = trial.op == DDL_AVERAGE || scales.before != 1 || scales.after != 1;
  const bool is_narrow_float = sizeof(T) <= 2 && !kIsInteger<T>;
  const bool has_other_order = !promises().has_canonical_order && !kIsInteger<T>;
  const bool rounds_more = !promises().rounds_once && is_narrow_float && is_scaled;
  if (!has_other_order && !rounds_more) return expect_bits(got, wanted, what);
  // A large factor makes the rounding of a small difference of large numbers large; that of 8 bits always is.
  if (std::abs(scales.before * scales.after) <= 10 && !kIsFloat8<T>) return expect_near(got, wanted, what);
  expect(got.fences_hold(), what + ": wrote outside of the buffer");
}

template <class T>
void check_of(const Communicator& comm, const Trial& trial) {
  const std::string what = describe(comm, trial);
  const bool scatters = trial.collective == Collective::kReduceScatter;
  const std::uint64_t count =
      scatters ? std::accumulate(trial.counts.begin(), trial.counts.end(), std::uint64_t{0}) : trial.count;
  // The part of the result that this rank receives.
  const auto own = static_cast<std::size_t>(comm.rank);
  const auto first_count = trial.counts.begin();
  const std::uint64_t offset =
      scatters ? std::accumulate(first_count, first_count + comm.rank, std::uint64_t{0}) : 0;
  const bool receives = trial.collective != Collective::kReduce || comm.rank == trial.root;
  std::vector<T> wanted(scatters ? trial.counts[own] : receives ? count : 0);
  for (std::uint64_t e = 0; e < wanted.size(); ++e) {
    wanted[e] = trial.collective == Collective::kScan
                    ? scanned_element<T>(trial.op, comm.rank, e, trial.seed, trial.scales)
                    : reduced_element<T>(trial.op, comm.groups, offset + e, trial.seed, trial.scales);
  }
  const std::vector<T> input = input_of<T>(comm.rank, count, trial.seed);

  if (trial.buffers != Buffers::kInPlace) {
    Fenced<T> send(input, trial.shift, heap_of(comm, trial)),
        recv(wanted.size(), trial.shift, heap_of(comm, trial));
    // A rank that receives nothing needs no buffer.
    T* target = receives ? recv.data() : nullptr;
    expect_ok(call(comm, trial, count, send.data(), target), what);
    expect_result(recv, wanted, trial, what);
    expect_bits(send, input, what + ": changed its input");
  }
  if (trial.buffers != Buffers::kApart) {
    Fenced<T> both(input, trial.shift, heap_of(comm, trial));
    expect_ok(call(comm, trial, count, both.data(), both.data() + offset), what + ", in place");
    std::vector<T> after = input;
    std::copy(wanted.begin(), wanted.end(), after.begin() + static_cast<std::ptrdiff_t>(offset));
    expect_result(both, after, trial, what + ", in place");
  }
}

}  // namespace

void check_reduction(const Communicator& comm, const Trial& trial) {
  with_type(trial.dtype, [&]<class T>() { check_of<T>(comm, trial); });
}

}  // namespace ddl::conformance
