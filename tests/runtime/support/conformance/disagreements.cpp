// In which ways one rank's call can differ from the others', collective by collective.
#include "runtime/support/conformance/mismatch.h"

namespace ddl::conformance {
namespace {

constexpr std::uint64_t kCount = kMismatchCount;

ddl_call_options with_scales(const Communicator& comm, double prescale, double postscale) {
  ddl_call_options options = comm.options();
  options.prescale = prescale;
  options.postscale = postscale;
  return options;
}

/// 2 elements for each rank, but kCount for the first or the last.
std::vector<std::uint64_t> counts_of(const Communicator& comm, bool rest_to_first) {
  const auto size = static_cast<std::uint64_t>(comm.size);
  std::vector<std::uint64_t> counts(size, 2);
  (rest_to_first ? counts.front() : counts.back()) = kCount;
  return counts;
}

Variant allreduce(std::string differs, std::vector<std::string> parts, std::uint64_t count,
                  ddl_dtype dtype = DDL_FLOAT32, ddl_op op = DDL_SUM, double prescale = 1,
                  double postscale = 1) {
  return {std::move(differs), std::move(parts), [=](const Communicator& comm, float* send, float* recv) {
            const ddl_call_options options = with_scales(comm, prescale, postscale);
            // More than the buffers of the others hold.
            std::vector<float> large(count > kCount ? count : 0);
            if (!large.empty()) send = recv = large.data();
            return ddl_allreduce(comm.context, send, recv, count, dtype, op, &options);
          }};
}

Variant reduce(std::string differs, std::vector<std::string> parts, std::uint64_t count = kCount,
               ddl_dtype dtype = DDL_FLOAT32, ddl_op op = DDL_SUM, int root = 0, double postscale = 1) {
  parts.insert(parts.begin(), "reduce(");
  return {std::move(differs), std::move(parts), [=](const Communicator& comm, float* send, float* recv) {
            const ddl_call_options options = with_scales(comm, 1, postscale);
            return ddl_reduce(comm.context, send, recv, count, dtype, op, root, &options);
          }};
}

Variant reduce_scatter(std::string differs, std::vector<std::string> parts, bool rest_to_first = true,
                       ddl_dtype dtype = DDL_FLOAT32, ddl_op op = DDL_SUM, double prescale = 1) {
  parts.insert(parts.begin(), "reduce_scatter(");
  return {std::move(differs), std::move(parts), [=](const Communicator& comm, float* send, float* recv) {
            const ddl_call_options options = with_scales(comm, prescale, 1);
            return ddl_reduce_scatter(comm.context, send, recv, counts_of(comm, rest_to_first).data(), dtype,
                                      op, &options);
          }};
}

Variant scan(std::string differs, std::vector<std::string> parts, std::uint64_t count = kCount,
             ddl_dtype dtype = DDL_FLOAT32, ddl_op op = DDL_SUM, double prescale = 1) {
  parts.insert(parts.begin(), "scan(");
  return {std::move(differs), std::move(parts), [=](const Communicator& comm, float* send, float* recv) {
            const ddl_call_options options = with_scales(comm, prescale, 1);
            return ddl_scan(comm.context, send, recv, count, dtype, op, &options);
          }};
}

/// broadcast, gather and scatter, whose arguments are the same.
using Rooted = ddl_status (*)(const Communicator&, float* send, float* recv, std::uint64_t, ddl_dtype,
                              int root, const ddl_call_options*);
Variant rooted(Rooted function, const char* name, std::string differs, std::vector<std::string> parts,
               std::uint64_t count = kCount, ddl_dtype dtype = DDL_FLOAT32, int root = 0) {
  parts.insert(parts.begin(), name);
  return {std::move(differs), std::move(parts), [=](const Communicator& comm, float* send, float* recv) {
            const ddl_call_options options = comm.options();
            return function(comm, send, recv, count, dtype, root, &options);
          }};
}

/// allgather and alltoall likewise.
using Unrooted = ddl_status (*)(ddl_context*, const void* send, void* recv, std::uint64_t, ddl_dtype,
                                const ddl_call_options*);
Variant unrooted(Unrooted function, const char* name, std::string differs, std::vector<std::string> parts,
                 std::uint64_t count = kCount, ddl_dtype dtype = DDL_FLOAT32) {
  parts.insert(parts.begin(), name);
  return {std::move(differs), std::move(parts), [=](const Communicator& comm, float* send, float* recv) {
            const ddl_call_options options = comm.options();
            return function(comm.context, send, recv, count, dtype, &options);
          }};
}

Variant allgatherv(std::string differs, std::vector<std::string> parts, bool rest_to_first = true,
                   ddl_dtype dtype = DDL_FLOAT32) {
  parts.insert(parts.begin(), "allgatherv(");
  return {std::move(differs), std::move(parts), [=](const Communicator& comm, float* send, float* recv) {
            const ddl_call_options options = comm.options();
            return ddl_allgatherv(comm.context, send, recv, counts_of(comm, rest_to_first).data(), dtype,
                                  &options);
          }};
}

Variant alltoallv(std::string differs, std::vector<std::string> parts, ddl_dtype dtype = DDL_FLOAT32) {
  parts.insert(parts.begin(), "alltoallv(");
  return {std::move(differs), std::move(parts), [=](const Communicator& comm, float* send, float* recv) {
            const ddl_call_options options = comm.options();
            const std::vector<std::uint64_t> counts(static_cast<std::size_t>(comm.size), 2);
            std::vector<std::uint64_t> came(counts.size());
            return ddl_alltoallv(comm.context, send, counts.data(), recv, counts.size() * 2, came.data(),
                                 dtype, &options);
          }};
}

ddl_status call_broadcast(const Communicator& comm, float*, float* recv, std::uint64_t count, ddl_dtype dtype,
                          int root, const ddl_call_options* options) {
  return ddl_broadcast(comm.context, recv, count, dtype, root, options);
}
ddl_status call_gather(const Communicator& comm, float* send, float* recv, std::uint64_t count,
                       ddl_dtype dtype, int root, const ddl_call_options* options) {
  return ddl_gather(comm.context, send, recv, count, dtype, root, options);
}
ddl_status call_scatter(const Communicator& comm, float* send, float* recv, std::uint64_t count,
                        ddl_dtype dtype, int root, const ddl_call_options* options) {
  return ddl_scatter(comm.context, send, recv, count, dtype, root, options);
}

Variant barrier() {
  return {"barrier", {"barrier("}, [](const Communicator& comm, float*, float*) {
            const ddl_call_options options = comm.options();
            return ddl_barrier(comm.context, &options);
          }};
}

std::vector<Disagreement> of_reductions() {
  const Variant usual = allreduce("", {"allreduce(sum, float32, 10 elements)"}, kCount);
  return {
      {usual,
       {allreduce("count", {"allreduce(sum, float32, 9 elements)"}, kCount - 1),
        allreduce("count 0", {"allreduce(sum, float32, 0 elements)"}, 0),
        allreduce("several chunks", {"allreduce(sum, float32, 100000 elements)"}, 100000),
        allreduce("type", {"allreduce(sum, int32, 10 elements)"}, kCount, DDL_INT32),
        allreduce("operation", {"allreduce(max, float32, 10 elements)"}, kCount, DDL_FLOAT32, DDL_MAX),
        allreduce("adasum", {"allreduce(adasum, float32, 10 elements)"}, kCount, DDL_FLOAT32, DDL_ADASUM),
        allreduce("prescale", {"allreduce(", "prescale", "0.5"}, kCount, DDL_FLOAT32, DDL_SUM, 0.5),
        allreduce("postscale", {"allreduce(", "postscale", "0.5"}, kCount, DDL_FLOAT32, DDL_SUM, 1, 0.5),
        reduce("reduce", {}), reduce_scatter("reduce_scatter", {}), scan("scan", {}),
        unrooted(ddl_allgather, "allgather(", "allgather", {"float32", "10 elements"}), barrier()}},
      {allreduce("", {"allreduce(adasum, float32, 10 elements)"}, kCount, DDL_FLOAT32, DDL_ADASUM),
       {allreduce("count", {"allreduce(adasum, float32, 9 elements)"}, kCount - 1, DDL_FLOAT32, DDL_ADASUM),
        allreduce("count 0", {"allreduce(adasum, float32, 0 elements)"}, 0, DDL_FLOAT32, DDL_ADASUM),
        allreduce("type", {"allreduce(adasum, bfloat16, 10 elements)"}, kCount, DDL_BFLOAT16, DDL_ADASUM),
        unrooted(ddl_alltoall, "alltoall(", "alltoall", {"float32"})}},
      {reduce("", {"root 0"}),
       {reduce("root", {"root 1"}, kCount, DDL_FLOAT32, DDL_SUM, 1), reduce("count", {"9 elements"}, 9),
        reduce("type", {"int32"}, kCount, DDL_INT32),
        reduce("operation", {"min"}, kCount, DDL_FLOAT32, DDL_MIN),
        reduce("postscale", {"postscale", "4"}, kCount, DDL_FLOAT32, DDL_SUM, 0, 4), usual, barrier()}},
      {reduce_scatter("", {"sum", "float32"}),
       {reduce_scatter("counts", {}, false), reduce_scatter("type", {"int32"}, true, DDL_INT32),
        reduce_scatter("operation", {"product"}, true, DDL_FLOAT32, DDL_PRODUCT),
        reduce_scatter("prescale", {"prescale", "-2"}, true, DDL_FLOAT32, DDL_SUM, -2),
        unrooted(ddl_alltoall, "alltoall(", "alltoall", {})}},
      {scan("", {"sum", "float32"}),
       {scan("count", {"1 element"}, 1), scan("type", {"uint32"}, kCount, DDL_UINT32),
        scan("operation", {"product"}, kCount, DDL_FLOAT32, DDL_PRODUCT),
        scan("prescale", {"prescale", "2"}, kCount, DDL_FLOAT32, DDL_SUM, 2), usual}}};
}

std::vector<Disagreement> of_movement() {
  const auto broadcast = [](auto... arguments) { return rooted(call_broadcast, "broadcast(", arguments...); };
  const auto gather = [](auto... arguments) { return rooted(call_gather, "gather(", arguments...); };
  const auto scatter = [](auto... arguments) { return rooted(call_scatter, "scatter(", arguments...); };
  const auto allgather = [](auto... arguments) {
    return unrooted(ddl_allgather, "allgather(", arguments...);
  };
  const auto alltoall = [](auto... arguments) { return unrooted(ddl_alltoall, "alltoall(", arguments...); };
  using Words = std::vector<std::string>;
  return {
      {broadcast("", Words{"root 0", "float32", "10 elements"}),
       {broadcast("root", Words{"root 1"}, kCount, DDL_FLOAT32, 1),
        broadcast("count", Words{"9 elements"}, 9), broadcast("type", Words{"float16"}, kCount, DDL_FLOAT16),
        scatter("scatter", Words{})}},
      {gather("", Words{"root 0"}),
       {gather("root", Words{"root 1"}, kCount, DDL_FLOAT32, 1), gather("count", Words{"0 elements"}, 0),
        gather("type", Words{"int8"}, kCount, DDL_INT8), allgather("allgather", Words{}), barrier()}},
      {scatter("", Words{"root 0"}),
       {scatter("root", Words{"root 1"}, kCount, DDL_FLOAT32, 1), scatter("count", Words{"5 elements"}, 5),
        scatter("type", Words{"int32"}, kCount, DDL_INT32), gather("gather", Words{}), barrier()}},
      {allgather("", Words{"float32", "10 elements"}),
       {allgather("count", Words{"9 elements"}, 9), allgather("type", Words{"uint8"}, kCount, DDL_UINT8),
        allgatherv("allgatherv", {}), gather("gather", Words{})}},
      {allgatherv("", {"float32"}),
       {allgatherv("counts", {}, false), allgatherv("type", {"int32"}, true, DDL_INT32),
        allgather("allgather", Words{}), barrier()}},
      {alltoall("", Words{"float32", "10 elements"}),
       {alltoall("count", Words{"9 elements"}, 9), alltoall("type", Words{"int32"}, kCount, DDL_INT32),
        alltoallv("alltoallv", {}), barrier()}},
      {alltoallv("", {"float32"}),
       {alltoallv("type", {"int32"}, DDL_INT32), alltoall("alltoall", Words{}), barrier()}},
      {barrier(), {allgather("allgather", Words{}), reduce("reduce", {})}}};
}

}  // namespace

std::vector<Disagreement> disagreements() {
  std::vector<Disagreement> all = of_reductions();
  for (Disagreement& disagreement : of_movement()) all.push_back(std::move(disagreement));
  return all;
}

}  // namespace ddl::conformance
