#include <limits>

#include "runtime/support/conformance.h"
#include "runtime/support/conformance/communicator.h"
#include "runtime/support/conformance/types.h"
#include "runtime/support/expect.h"

namespace ddl::conformance {
namespace {

void refused(ddl_status status, const std::string& part) {
  expect_status(status, DDL_ERROR_INVALID_ARGUMENT, part);
  expect_contains(ddl_last_error(), part);
}
void unsupported(ddl_status status, const std::string& part) {
  expect_status(status, DDL_ERROR_UNSUPPORTED, part);
  expect_contains(ddl_last_error(), part);
}

/// Buffers and counts that arguments are made of.
struct Material {
  explicit Material(ddl_context* the_context)
      : context(the_context),
        size(static_cast<std::size_t>(ddl_size(context))),
        own(static_cast<std::size_t>(ddl_rank(context))),
        doubles(size * 16 + 32),
        twos(size, 2),
        huge(size, UINT64_MAX / 8),
        received_counts(size) {}

  ddl_context* context;
  std::size_t size, own;
  std::vector<double> doubles;
  std::vector<std::uint64_t> twos, huge, received_counts;
  double* data = doubles.data();
  double* far = data + size * 8 + 16;  ///< beyond any buffer that begins at data
  unsigned char* odd_bytes = reinterpret_cast<unsigned char*>(data) + 4;
};

void check_allreduce_arguments(const Material& with) {
  ddl_context* context = with.context;
  double* data = with.data;
  refused(ddl_allreduce(nullptr, data, data, 1, DDL_FLOAT64, DDL_SUM, nullptr), "context is null");
  refused(ddl_allreduce(context, nullptr, data, 1, DDL_FLOAT64, DDL_SUM, nullptr), "send is null");
  refused(ddl_allreduce(context, data, nullptr, 1, DDL_FLOAT64, DDL_SUM, nullptr), "recv is null");
  refused(ddl_allreduce(context, data, data, 1, 99, DDL_SUM, nullptr), "dtype 99 does not exist");
  refused(ddl_allreduce(context, data, data, 1, -1, DDL_SUM, nullptr), "dtype -1 does not exist");
  refused(ddl_allreduce(context, data, data, 1, 0x10120, DDL_SUM, nullptr), "dtype 65824 does not exist");
  refused(ddl_allreduce(context, data, data, 1, DDL_FLOAT64, 12, nullptr), "op 12 does not exist");
  refused(ddl_allreduce(context, data, data, 1, DDL_BFLOAT16, DDL_BIT_AND, nullptr),
          "there is no bitwise and of bfloat16");
  refused(ddl_allreduce(context, data, data, 1, DDL_BOOL, DDL_AVERAGE, nullptr),
          "there is no average of bool");
  refused(ddl_allreduce(context, data, data, 1, DDL_INT32, DDL_ADASUM, nullptr),
          "there is no adasum of int32");
  refused(ddl_allreduce(context, data, data, 1, DDL_FLOAT8_E5M2, DDL_ADASUM, nullptr),
          "there is no adasum of float8_e5m2");
  refused(ddl_allreduce(context, data, data, UINT64_MAX / 8, DDL_FLOAT64, DDL_SUM, nullptr),
          "does not fit into memory");
  refused(ddl_allreduce(context, data, data + 1, 2, DDL_FLOAT64, DDL_SUM, nullptr), "overlap");
  refused(ddl_allreduce(context, data + 1, data, 2, DDL_FLOAT64, DDL_SUM, nullptr), "overlap");
  refused(ddl_allreduce(context, with.odd_bytes, data + 8, 1, DDL_FLOAT64, DDL_SUM, nullptr),
          "send is not aligned");
  refused(ddl_allreduce(context, data, with.odd_bytes + 61, 1, DDL_FLOAT32, DDL_SUM, nullptr),
          "recv is not aligned");
}

/// The numbers of types: version 0.1's mean what they meant, also where other ranks use today's, and those of 8-bit
/// floats are refused.
void check_dtypes(const Material& with) {
  ddl_context* context = with.context;
  for (ddl_dtype old = 0; old < static_cast<ddl_dtype>(std::size(kTypesOfVersion01)); ++old) {
    const ddl_dtype dtype = kTypesOfVersion01[old];
    expect(ddl_dtype_size(old) == ddl_dtype_size(dtype), "the size of type " + std::to_string(old));
    std::vector<unsigned char> ones(8, 1);
    expect_ok(
        ddl_allreduce(context, ones.data(), ones.data(), 1, with.own == 0 ? old : dtype, DDL_MAX, nullptr),
        "type " + std::to_string(old) + " of version 0.1 on rank 0");
    expect(ones == std::vector<unsigned char>(8, 1), "the maximum of equal values");
  }
  expect(ddl_dtype_size(DDL_BOOL) == 1 && ddl_dtype_size(DDL_BFLOAT16) == 2 &&
             ddl_dtype_size(DDL_FLOAT32) == 4 && ddl_dtype_size(DDL_INT64) == 8,
         "the sizes of types");
  for (const ddl_dtype none : {-1, 13, 0xFF, 0x101, 0x340, 0x500, 0x10120})
    expect(ddl_dtype_size(none) == 0, "the size of a type that does not exist");
  for (const ddl_dtype reserved : {0x304, 0x30F}) {
    unsupported(ddl_allreduce(context, with.data, with.data, 1, reserved, DDL_SUM, nullptr),
                "dtype " + std::to_string(reserved) + " is reserved for an 8-bit float");
    expect(ddl_dtype_size(reserved) == 0, "the size of a reserved type");
  }
}

void check_reduce_arguments(const Material& with) {
  ddl_context* context = with.context;
  double *data = with.data, *far = with.far;
  const auto size = static_cast<std::int32_t>(with.size), own = static_cast<std::int32_t>(with.own);
  refused(ddl_reduce(nullptr, data, far, 1, DDL_FLOAT64, DDL_SUM, 0, nullptr), "context is null");
  refused(ddl_reduce(context, nullptr, far, 1, DDL_FLOAT64, DDL_SUM, 0, nullptr), "send is null");
  refused(ddl_reduce(context, data, nullptr, 1, DDL_FLOAT64, DDL_SUM, own, nullptr), "recv is null");
  refused(ddl_reduce(context, data, data + 1, 2, DDL_FLOAT64, DDL_SUM, own, nullptr), "overlap");
  refused(ddl_reduce(context, data, far, 1, DDL_FLOAT64, DDL_SUM, size, nullptr), "root");
  refused(ddl_reduce(context, data, far, 1, DDL_FLOAT64, DDL_SUM, -1, nullptr), "root -1");
  refused(ddl_reduce(context, data, far, 1, 13, DDL_SUM, 0, nullptr), "dtype 13");
  refused(ddl_reduce(context, data, far, 1, DDL_FLOAT64, -1, 0, nullptr), "op -1");
  refused(ddl_reduce(context, data, far, UINT64_MAX / 8, DDL_FLOAT64, DDL_SUM, 0, nullptr), "memory");
  refused(ddl_reduce(context, data, far, 1, DDL_FLOAT16, DDL_BIT_XOR, 0, nullptr), "float16");
  refused(ddl_reduce(context, data, far, 1, DDL_FLOAT64, DDL_ADASUM, 0, nullptr),
          "op adasum is for allreduces alone, and this is a reduce");
}

void check_reduce_scatter_arguments(const Material& with) {
  ddl_context* context = with.context;
  double *data = with.data, *far = with.far;
  const std::uint64_t* counts = with.twos.data();
  refused(ddl_reduce_scatter(nullptr, data, far, counts, DDL_FLOAT64, DDL_SUM, nullptr), "context is null");
  refused(ddl_reduce_scatter(context, data, far, nullptr, DDL_FLOAT64, DDL_SUM, nullptr), "counts is null");
  refused(ddl_reduce_scatter(context, nullptr, far, counts, DDL_FLOAT64, DDL_SUM, nullptr), "send is null");
  refused(ddl_reduce_scatter(context, data, nullptr, counts, DDL_FLOAT64, DDL_SUM, nullptr), "recv is null");
  refused(ddl_reduce_scatter(context, data, far, with.huge.data(), DDL_FLOAT64, DDL_SUM, nullptr), "memory");
  refused(ddl_reduce_scatter(context, data, far, counts, DDL_BOOL, DDL_SUM, nullptr), "bool");
  refused(ddl_reduce_scatter(context, data, far, counts, DDL_FLOAT64, DDL_ADASUM, nullptr),
          "op adasum is for allreduces alone, and this is a reduce_scatter");
  // A part of the input that is not this rank's.
  refused(ddl_reduce_scatter(context, data, data + 2 * with.own + 1, counts, DDL_FLOAT64, DDL_SUM, nullptr),
          "overlap");
  // Counts whose sum is too large for 64 bits.
  std::vector<std::uint64_t> wrapping(with.size, 1);
  wrapping[0] = UINT64_MAX;
  refused(ddl_reduce_scatter(context, data, far, wrapping.data(), DDL_UINT8, DDL_SUM, nullptr), "memory");
}

void check_scan_arguments(const Material& with) {
  ddl_context* context = with.context;
  double *data = with.data, *far = with.far;
  refused(ddl_scan(nullptr, data, far, 1, DDL_FLOAT64, DDL_SUM, nullptr), "context is null");
  refused(ddl_scan(context, nullptr, far, 1, DDL_FLOAT64, DDL_SUM, nullptr), "send is null");
  refused(ddl_scan(context, data, nullptr, 1, DDL_FLOAT64, DDL_SUM, nullptr), "recv is null");
  refused(ddl_scan(context, data, far, 1, DDL_FLOAT64, DDL_AVERAGE, nullptr), "average");
  refused(ddl_scan(context, data, data + 1, 2, DDL_FLOAT64, DDL_SUM, nullptr), "overlap");
  refused(ddl_scan(context, data, far, UINT64_MAX / 8, DDL_FLOAT64, DDL_SUM, nullptr), "memory");
  refused(ddl_scan(context, data, far, 1, 13, DDL_SUM, nullptr), "dtype 13");
}

void check_broadcast_arguments(const Material& with) {
  ddl_context* context = with.context;
  double* data = with.data;
  refused(ddl_broadcast(context, data, 1, DDL_FLOAT64, -1, nullptr), "root -1 is not a rank");
  refused(ddl_broadcast(context, data, 1, DDL_FLOAT64, static_cast<std::int32_t>(with.size), nullptr),
          "is not a rank of 0 to");
  refused(ddl_broadcast(context, nullptr, 1, DDL_FLOAT64, 0, nullptr), "buffer is null");
}

void check_gathering_arguments(const Material& with) {
  ddl_context* context = with.context;
  double *data = with.data, *far = with.far;
  const std::uint64_t* counts = with.twos.data();
  const auto size = static_cast<std::int32_t>(with.size), own = static_cast<std::int32_t>(with.own);
  refused(ddl_allgather(context, data + (own == 0 ? 1 : 0), data, 2, DDL_FLOAT64, nullptr), "overlap");
  refused(ddl_allgather(context, data, data, UINT64_MAX / 8, DDL_FLOAT64, nullptr),
          "does not fit into memory");

  refused(ddl_allgatherv(nullptr, far, data, counts, DDL_FLOAT64, nullptr), "context is null");
  refused(ddl_allgatherv(context, far, data, nullptr, DDL_FLOAT64, nullptr), "counts is null");
  refused(ddl_allgatherv(context, nullptr, data, counts, DDL_FLOAT64, nullptr), "send is null");
  refused(ddl_allgatherv(context, far, nullptr, counts, DDL_FLOAT64, nullptr), "recv is null");
  refused(ddl_allgatherv(context, far, data, with.huge.data(), DDL_FLOAT64, nullptr), "memory");
  refused(ddl_allgatherv(context, data + 2 * with.own + 1, data, counts, DDL_FLOAT64, nullptr), "overlap");
  refused(ddl_allgatherv(context, far, data, counts, 13, nullptr), "dtype 13");

  refused(ddl_gather(nullptr, far, data, 1, DDL_FLOAT64, 0, nullptr), "context is null");
  refused(ddl_gather(context, nullptr, data, 1, DDL_FLOAT64, 0, nullptr), "send is null");
  refused(ddl_gather(context, far, nullptr, 1, DDL_FLOAT64, own, nullptr), "recv is null");
  refused(ddl_gather(context, far, data, 1, DDL_FLOAT64, size, nullptr), "root");
  refused(ddl_gather(context, data + (own == 0 ? 1 : 0), data, 2, DDL_FLOAT64, own, nullptr), "overlap");
  refused(ddl_gather(context, far, data, UINT64_MAX / 8, DDL_FLOAT64, 0, nullptr), "memory");
}

void check_scatter_arguments(const Material& with) {
  ddl_context* context = with.context;
  double *data = with.data, *far = with.far;
  const auto size = static_cast<std::int32_t>(with.size), own = static_cast<std::int32_t>(with.own);
  refused(ddl_scatter(nullptr, data, far, 1, DDL_FLOAT64, 0, nullptr), "context is null");
  refused(ddl_scatter(context, nullptr, far, 1, DDL_FLOAT64, own, nullptr), "send is null");
  refused(ddl_scatter(context, data, nullptr, 1, DDL_FLOAT64, 0, nullptr), "recv is null");
  refused(ddl_scatter(context, data, far, 1, DDL_FLOAT64, -2, nullptr), "root -2");
  refused(ddl_scatter(context, data, far, 1, DDL_FLOAT64, size, nullptr), "root");
  refused(ddl_scatter(context, data, data + (own == 0 ? 1 : 0), 2, DDL_FLOAT64, own, nullptr), "overlap");
  refused(ddl_scatter(context, data, far, UINT64_MAX / 8, DDL_FLOAT64, 0, nullptr), "memory");
}

void check_alltoall_arguments(Material& with) {
  ddl_context* context = with.context;
  double *data = with.data, *far = with.far;
  refused(ddl_alltoall(nullptr, data, far, 1, DDL_FLOAT64, nullptr), "context is null");
  refused(ddl_alltoall(context, nullptr, far, 1, DDL_FLOAT64, nullptr), "send is null");
  refused(ddl_alltoall(context, data, nullptr, 1, DDL_FLOAT64, nullptr), "recv is null");
  refused(ddl_alltoall(context, data, data + 1, 2, DDL_FLOAT64, nullptr), "overlap");
  refused(ddl_alltoall(context, data, far, UINT64_MAX / 8, DDL_FLOAT64, nullptr), "memory");

  const std::uint64_t* counts = with.twos.data();
  std::uint64_t* received_counts = with.received_counts.data();
  const std::uint64_t room = 2 * with.size;
  const auto alltoallv = [&](const void* send, const std::uint64_t* send_counts, void* recv,
                             std::uint64_t capacity, std::uint64_t* recv_counts,
                             ddl_dtype dtype = DDL_FLOAT64) {
    return ddl_alltoallv(context, send, send_counts, recv, capacity, recv_counts, dtype, nullptr);
  };
  refused(ddl_alltoallv(nullptr, data, counts, far, room, received_counts, DDL_FLOAT64, nullptr),
          "context is null");
  refused(alltoallv(data, nullptr, far, room, received_counts), "send_counts is null");
  refused(alltoallv(data, counts, far, room, nullptr), "recv_counts is null");
  refused(alltoallv(nullptr, counts, far, room, received_counts), "send is null");
  refused(alltoallv(data, counts, nullptr, room, received_counts), "recv is null");
  refused(alltoallv(data, with.huge.data(), far, room, received_counts), "memory");
  refused(alltoallv(data, counts, far, UINT64_MAX / 8, received_counts), "memory");
  refused(alltoallv(data, counts, far, room, received_counts, 13), "dtype 13");
  // Not even exactly in place.
  refused(alltoallv(data, counts, data, room, received_counts), "overlap");
  refused(alltoallv(data, counts, data + 1, room, received_counts), "overlap");
}

void check_options(const Material& with) {
  ddl_context* context = with.context;
  ddl_call_options options = DDL_CALL_OPTIONS_INIT;
  options.struct_size = 0;
  refused(ddl_barrier(context, &options), "initialise the struct with DDL_CALL_OPTIONS_INIT");
  options = DDL_CALL_OPTIONS_INIT;
  options.reserved = 1;
  refused(ddl_barrier(context, &options), "reserved is not 0");
  options = DDL_CALL_OPTIONS_INIT;
  options.timeout_seconds = -1;
  refused(ddl_barrier(context, &options), "timeout_seconds is not a number of seconds");
  options.timeout_seconds = std::numeric_limits<double>::quiet_NaN();
  refused(ddl_barrier(context, &options), "timeout_seconds is not a number of seconds");
  options = DDL_CALL_OPTIONS_INIT;
  options.process_set = 7'000'000;
  refused(ddl_barrier(context, &options), "process set 7000000");
  options.process_set = DDL_NO_PROCESS_SET;
  refused(ddl_barrier(context, &options), "process set");
  options = DDL_CALL_OPTIONS_INIT;
  options.stream = with.data;
  refused(ddl_barrier(context, &options), "takes no stream");
  refused(ddl_allreduce(context, with.data, with.data, 1, DDL_FLOAT64, DDL_SUM, &options), "CPU memory");
}

void check_scale_arguments(const Material& with) {
  double* data = with.data;
  const auto scaled_sum = [&](double before, double after, ddl_dtype dtype, ddl_op op = DDL_SUM) {
    ddl_call_options options = DDL_CALL_OPTIONS_INIT;
    options.prescale = before;
    options.postscale = after;
    return ddl_allreduce(with.context, data, data, 1, dtype, op, &options);
  };
  for (const double bad :
       {0.0, -0.0, std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()}) {
    refused(scaled_sum(bad, 1.0, DDL_FLOAT64), "prescale");
    refused(scaled_sum(1.0, bad, DDL_INT32), "postscale");
  }
  refused(scaled_sum(2.0, 1.0, DDL_BOOL, DDL_MAX), "bool");
  refused(scaled_sum(1.0, 0.5, DDL_BOOL, DDL_LOGICAL_AND), "bool");
}

/// Refused calls do not count: no rank waits, and the next call matches. Empty calls may have null buffers.
void check_empty_calls(Material& with) {
  ddl_context* context = with.context;
  const std::vector<std::uint64_t> none(with.size, 0);
  const ddl_dtype dtype = DDL_FLOAT64;
  expect_ok(ddl_allreduce(context, nullptr, nullptr, 0, dtype, DDL_SUM, nullptr), "empty allreduce");
  expect_ok(ddl_reduce(context, nullptr, nullptr, 0, dtype, DDL_SUM, 0, nullptr), "empty reduce");
  expect_ok(ddl_reduce_scatter(context, nullptr, nullptr, none.data(), dtype, DDL_SUM, nullptr),
            "empty reduce_scatter");
  expect_ok(ddl_scan(context, nullptr, nullptr, 0, dtype, DDL_SUM, nullptr), "empty scan");
  expect_ok(ddl_broadcast(context, nullptr, 0, dtype, 0, nullptr), "empty broadcast");
  expect_ok(ddl_allgather(context, nullptr, nullptr, 0, dtype, nullptr), "empty allgather");
  expect_ok(ddl_allgatherv(context, nullptr, nullptr, none.data(), dtype, nullptr), "empty allgatherv");
  expect_ok(ddl_gather(context, nullptr, nullptr, 0, dtype, 0, nullptr), "empty gather");
  expect_ok(ddl_scatter(context, nullptr, nullptr, 0, dtype, 0, nullptr), "empty scatter");
  expect_ok(ddl_alltoall(context, nullptr, nullptr, 0, dtype, nullptr), "empty alltoall");
  expect_ok(
      ddl_alltoallv(context, nullptr, none.data(), nullptr, 0, with.received_counts.data(), dtype, nullptr),
      "empty alltoallv");
  const ddl_call_options options = DDL_CALL_OPTIONS_INIT;
  expect_ok(ddl_barrier(context, &options), "barrier with default options");
}

}  // namespace

void check_bad_arguments(ddl_context* context) {
  Material with(context);
  check_allreduce_arguments(with);
  check_dtypes(with);
  check_reduce_arguments(with);
  check_reduce_scatter_arguments(with);
  check_scan_arguments(with);
  check_broadcast_arguments(with);
  check_gathering_arguments(with);
  check_scatter_arguments(with);
  check_alltoall_arguments(with);
  refused(ddl_barrier(nullptr, nullptr), "context is null");
  check_options(with);
  check_scale_arguments(with);
  check_empty_calls(with);
}

}  // namespace ddl::conformance
