// libddl, with private buffers, or, compiled with DDL_BENCH_IN_SHARED_HEAP, with buffers of ddl_alloc().
#include <cstddef>
#include <vector>

#include "bench/contenders/measured_rank.h"
#include "ddl/ddl.h"

namespace ddl::bench {
namespace {

#ifdef DDL_BENCH_IN_SHARED_HEAP
constexpr bool kInSharedHeap = true;
#else
constexpr bool kInSharedHeap = false;
#endif

ddl_status make_call(ddl_context* context, Collective what, const Buffers& of) {
  switch (what) {
    case Collective::kAllreduce:
      return ddl_allreduce(context, of.send, of.recv, of.count, DDL_FLOAT32, DDL_SUM, nullptr);
    case Collective::kAllgather:
      return ddl_allgather(context, of.send, of.recv, of.part, DDL_FLOAT32, nullptr);
    case Collective::kAlltoall: return ddl_alltoall(context, of.send, of.recv, of.part, DDL_FLOAT32, nullptr);
    case Collective::kBroadcast: return ddl_broadcast(context, of.send, of.count, DDL_FLOAT32, 0, nullptr);
    case Collective::kReduceScatter: {
      static std::vector<std::uint64_t> counts;  // programs keep such memory, too
      counts.assign(ddl_size(context), of.part);
      return ddl_reduce_scatter(context, of.send, of.recv, counts.data(), DDL_FLOAT32, DDL_SUM, nullptr);
    }
  }
  return DDL_ERROR_UNSUPPORTED;
}

int run_rank(int argc, char** argv) {
  auto job = join_benchmark(argc, argv);
  if (!job) return fail_rank(job.error());
  ddl_context* context = nullptr;
  if (ddl_init(nullptr, &context) != DDL_OK) {
    return fail_rank(ddl::Error(ddl::ErrorCode::kSystem, ddl_last_error()));
  }
  ddl::Status status = check_world(*job, ddl_rank(context), ddl_size(context));
  const Call call = [context](Collective what, const Buffers& buffers) {
    return make_call(context, what, buffers) == DDL_OK ? buffers.recv : nullptr;
  };
  if (status && kInSharedHeap) {
    // The memory is valid until the context is finalized.
    const Allocate allocate = [context](std::size_t bytes) -> Result<float*> {
      void* memory = nullptr;
      if (ddl_alloc(context, bytes, &memory) != DDL_OK) return fail(ErrorCode::kSystem, ddl_last_error());
      return static_cast<float*>(memory);
    };
    status = measure(*job, Expect::kResults, allocate, call);
  } else if (status) {
    status = measure(*job, Expect::kResults, call);
  }
  // A failed rank exits without ddl_finalize(): the others may be waiting for it, and its exit ends the job.
  if (!status) return fail_rank(status.error().during(ddl_last_error()));
  return ddl_finalize(context) == DDL_OK ? 0 : 1;
}

}  // namespace
}  // namespace ddl::bench

int main(int argc, char** argv) { return ddl::bench::run_rank(argc, argv); }
