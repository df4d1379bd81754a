#include "runtime/src/backend/nccl/nccl_collectives.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "runtime/src/backend/nccl/fused_parts.h"

namespace ddl::runtime {
namespace {

/// Moves take bytes.
constexpr nccl::DataType kBytes = nccl::kUint8;

std::optional<nccl::DataType> type_of(ddl_dtype dtype) {
  switch (dtype) {
    case DDL_INT8: return nccl::kInt8;
    case DDL_UINT8: return nccl::kUint8;
    case DDL_INT32: return nccl::kInt32;
    case DDL_UINT32: return nccl::kUint32;
    case DDL_INT64: return nccl::kInt64;
    case DDL_UINT64: return nccl::kUint64;
    case DDL_FLOAT16: return nccl::kFloat16;
    case DDL_FLOAT32: return nccl::kFloat32;
    case DDL_FLOAT64: return nccl::kFloat64;
    case DDL_BFLOAT16: return nccl::kBfloat16;
    case DDL_FLOAT8_E4M3FN:
    case DDL_FLOAT8_E4M3FNUZ: return nccl::kFloat8E4m3;
    case DDL_FLOAT8_E5M2:
    case DDL_FLOAT8_E5M2FNUZ: return nccl::kFloat8E5m2;
    default: return std::nullopt;
  }
}

std::optional<nccl::RedOp> op_of(ddl_op op) {
  switch (op) {
    case DDL_SUM:
    case DDL_AVERAGE: return nccl::kSum;
    case DDL_PRODUCT: return nccl::kProduct;
    case DDL_MAX: return nccl::kMax;
    case DDL_MIN: return nccl::kMin;
    default: return std::nullopt;
  }
}

/// The calls of NCCL that are one call of libddl.
class Calls {
 public:
  Calls(NcclCommunicator& communicator, const Request& request, nccl::Comm comm)
      : library_(communicator.library()),
        nccl_(library_.functions()),
        stream_(communicator.stream()),
        rank_(communicator.rank()),
        size_(communicator.size()),
        request_(request),
        comm_(comm) {
    if (!has_op(request.call.kind)) return;
    type_ = *type_of(request.dtype());
    op_ = *op_of(request.call.op);
  }

  Status put(const BlockMove* blocks) const {
    switch (request_.call.kind) {
      case CallKind::kAllreduce: return allreduce();
      case CallKind::kReduce:
        return reduce(request_.send, request_.recv, request_.call.count, request_.call.root);
      case CallKind::kReduceScatter: return reduce_scatter();
      case CallKind::kBroadcast:
        return broadcast(request_.send, request_.recv, request_.call.count, request_.call.root);
      case CallKind::kAllgather:
        return check("ncclAllGather",
                     nccl_.ncclAllGather(request_.send, request_.recv, bytes(request_.call.count), kBytes,
                                         comm_, stream_));
      case CallKind::kAllgatherv: return allgatherv();
      case CallKind::kTransfer: return transfer();
      default: break;
    }
    DDL_CHECK(blocks != nullptr, request_.call.describe());
    return exchange(*blocks);
  }

 private:
  Status check(const char* function, nccl::Result result) const {
    return library_.check(function, result, comm_);
  }
  std::size_t bytes(std::uint64_t count) const { return count * request_.element_size; }

  Status allreduce_of(const std::byte* send, std::byte* recv, std::uint64_t count) const {
    if (count == 0) return {};
    return check("ncclAllReduce", nccl_.ncclAllReduce(send, recv, count, type_, op_, comm_, stream_));
  }
  Status allreduce() const {
    if (request_.parts.empty()) return allreduce_of(request_.send, request_.recv, request_.call.count);
    for (const Part& part : request_.parts) DDL_TRY(allreduce_of(part.send, part.recv, part.count));
    return {};
  }
  Status reduce(const std::byte* send, std::byte* recv, std::uint64_t count, int root) const {
    if (count == 0) return {};
    return check("ncclReduce", nccl_.ncclReduce(send, recv, count, type_, op_, root, comm_, stream_));
  }
  Status reduce_scatter() const {
    const auto& counts = request_.counts;
    bool is_even = true;
    for (const std::uint64_t count : counts) is_even = is_even && count == counts[0];
    if (is_even) {
      return check("ncclReduceScatter", nccl_.ncclReduceScatter(request_.send, request_.recv, counts[0],
                                                                type_, op_, comm_, stream_));
    }
    const std::byte* send = request_.send;
    for (int root = 0; root < size_; ++root) {
      const std::uint64_t count = counts[root];
      DDL_TRY(reduce(send, root == rank_ ? request_.recv : nullptr, count, root));
      send += bytes(count);
    }
    return {};
  }
  Status broadcast(const std::byte* send, std::byte* recv, std::uint64_t count, int root) const {
    if (count == 0) return {};
    return check("ncclBroadcast",
                 nccl_.ncclBroadcast(send, recv, bytes(count), kBytes, root, comm_, stream_));
  }
  Status allgatherv() const {
    std::byte* recv = request_.recv;
    for (int root = 0; root < size_; ++root) {
      const std::uint64_t count = request_.counts[root];
      DDL_TRY(broadcast(root == rank_ ? request_.send : recv, recv, count, root));
      recv += bytes(count);
    }
    return {};
  }
  Status transfer() const {
    const std::size_t all = bytes(request_.call.count);
    if (request_.call.root == rank_)
      return check("ncclSend", nccl_.ncclSend(request_.send, all, kBytes, request_.peer, comm_, stream_));
    return check("ncclRecv", nccl_.ncclRecv(request_.recv, all, kBytes, request_.peer, comm_, stream_));
  }
  /// Every block is a message. One that this rank has for itself is copied.
  Status exchange(const BlockMove& blocks) const {
    for (int other = 0; other < size_; ++other) {
      if (other == rank_) continue;
      if (const std::uint64_t count = blocks.count(rank_, other); count > 0) {
        DDL_TRY(check("ncclSend", nccl_.ncclSend(request_.send + bytes(blocks.send_offset(rank_, other)),
                                                 bytes(count), kBytes, other, comm_, stream_)));
      }
      if (const std::uint64_t count = blocks.count(other, rank_); count > 0) {
        DDL_TRY(check("ncclRecv", nccl_.ncclRecv(request_.recv + bytes(blocks.recv_offset(other, rank_)),
                                                 bytes(count), kBytes, other, comm_, stream_)));
      }
    }
    return {};
  }

  const NcclLibrary& library_;
  const nccl::Functions& nccl_;
  StreamHandle stream_;
  int rank_;
  int size_;
  const Request& request_;
  nccl::Comm comm_;
  nccl::DataType type_ = kBytes;
  nccl::RedOp op_ = nccl::kSum;
};

bool is_exchange(CallKind kind) {
  return kind == CallKind::kGather || kind == CallKind::kScatter || kind == CallKind::kAlltoall ||
         kind == CallKind::kAlltoallv;
}

bool is_move(CallKind kind) {
  return is_exchange(kind) || kind == CallKind::kBroadcast || kind == CallKind::kAllgather ||
         kind == CallKind::kAllgatherv || kind == CallKind::kTransfer;
}

/// What the inputs of a reduction are multiplied by, and its results divided and multiplied by.
struct Scales {
  double before = 1;
  double divisor = 1;
  double after = 1;

  static Scales of(const Request& request, int size) {
    const Call& call = request.call;
    return {call.prescale, call.op == DDL_AVERAGE ? static_cast<double>(size) : 1.0, call.postscale};
  }
};

bool is_scaled(const Call& call) {
  return call.op == DDL_AVERAGE || call.prescale != 1 || call.postscale != 1;
}

Status scale(NcclCommunicator& communicator, ddl_dtype dtype, const std::byte* in, std::byte* out,
             unsigned long long count, double divisor, double factor) {
  if (count == 0) return {};
  ScalingArguments arguments{in, out, count, divisor, factor, begins_pack(in) && begins_pack(out) ? 1u : 0u};
  void* pointers[] = {&arguments};
  return communicator.device().launch(*scaling_kernel(dtype),
                                      std::max<std::uint64_t>(count * ddl_dtype_size(dtype) / kPackBytes, 1),
                                      pointers, communicator.stream());
}

/// The inputs times a factor, which the request then has instead of its own.
class ScaledInputs {
 public:
  Status make(NcclCommunicator& communicator, Request& request, double factor) {
    // An allreduce has room for them in its results; the others may keep their inputs only.
    if (request.call.kind == CallKind::kAllreduce) {
      if (request.parts.empty()) {
        DDL_TRY(
            scale(communicator, request.dtype(), request.send, request.recv, request.call.count, 1, factor));
        request.send = request.recv;
        return {};
      }
      for (const Part& part : request.parts) {
        DDL_TRY(scale(communicator, request.dtype(), part.send, part.recv, part.count, 1, factor));
        parts_.push_back({part.recv, part.recv, part.count});
      }
      request.parts = parts_;
      return {};
    }
    DDL_ASSIGN(scratch, communicator.scratch(request.call.count * request.element_size));
    DDL_TRY(scale(communicator, request.dtype(), request.send, scratch, request.call.count, 1, factor));
    request.send = scratch;
    return {};
  }

 private:
  std::vector<Part> parts_;
};

/// The results of this rank divided and multiplied.
Status scale_results(NcclCommunicator& communicator, const Request& request, const Scales& scales) {
  const auto scale_one = [&](std::byte* memory, std::uint64_t count) {
    return scale(communicator, request.dtype(), memory, memory, count, scales.divisor, scales.after);
  };
  if (!request.parts.empty()) {
    for (const Part& part : request.parts) DDL_TRY(scale_one(part.recv, part.count));
    return {};
  }
  const int rank = communicator.rank();
  if (request.call.kind == CallKind::kReduce && request.call.root != rank) return {};
  const bool is_scattered = request.call.kind == CallKind::kReduceScatter;
  return scale_one(request.recv, is_scattered ? request.counts[rank] : request.call.count);
}

/// The blocks of an exchange: those for other ranks are NCCL's messages; this rank's own is copied.
Status exchange(NcclCommunicator& communicator, Request request, const BlockMove* given,
                const NcclCommunicator::MustStop& must_stop) {
  const int rank = communicator.rank();
  std::optional<BlockMove> made;
  const BlockMove& blocks =
      given != nullptr ? *given : made.emplace(*BlockMove::of(request, communicator.size()));
  // NCCL cannot exchange blocks in place.
  if (request.call.kind == CallKind::kAlltoall && request.send == request.recv) {
    const std::size_t bytes =
        request.call.count * request.element_size * static_cast<std::size_t>(communicator.size());
    DDL_ASSIGN(scratch, communicator.scratch(bytes));
    DDL_TRY(communicator.device().copy(scratch, request.send, bytes, communicator.stream()));
    request.send = scratch;
  }
  if (const std::uint64_t own = blocks.count(rank, rank) * request.element_size; own > 0) {
    std::byte* const to = request.recv + blocks.recv_offset(rank, rank) * request.element_size;
    const std::byte* const from = request.send + blocks.send_offset(rank, rank) * request.element_size;
    if (to != from) DDL_TRY(communicator.device().copy(to, from, own, communicator.stream()));
  }
  return communicator.launch([&](nccl::Comm comm) { return Calls(communicator, request, comm).put(&blocks); },
                             must_stop);
}

}  // namespace

bool is_in_nccl(const Request& request, const NcclAbilities& abilities) {
  const Call& call = request.call;
  if (request.some_contribute_none || !request.contributes.empty()) return false;
  if (is_move(call.kind)) return true;
  if (!has_op(call.kind) || call.kind == CallKind::kScan) return false;
  if (is_scaled(call) && (!abilities.has_kernels || !scaling_kernel(request.dtype()))) return false;
  if (is_float8(request.dtype()) && !abilities.combines_float8(request.dtype())) return false;
  return type_of(request.dtype()).has_value() && op_of(call.op).has_value();
}

Status put_on_stream(NcclCommunicator& communicator, const Request& given, const BlockMove* blocks,
                     const NcclAbilities& abilities, const NcclCommunicator::MustStop& must_stop) {
  if (is_exchange(given.call.kind)) return exchange(communicator, given, blocks, must_stop);
  Request request = given;
  Scales scales;
  if (has_op(request.call.kind)) scales = Scales::of(request, communicator.size());
  FusedParts fused(communicator);
  if (abilities.has_kernels) DDL_TRY(fused.pack(request));
  // Where the results are to be, whatever the inputs become.
  const Request results = request;
  ScaledInputs inputs;
  if (scales.before != 1) DDL_TRY(inputs.make(communicator, request, scales.before));
  DDL_TRY(communicator.launch(
      [&](nccl::Comm comm) { return Calls(communicator, request, comm).put(nullptr); }, must_stop));
  if (scales.divisor != 1 || scales.after != 1) DDL_TRY(scale_results(communicator, results, scales));
  return fused.unpack();
}

}  // namespace ddl::runtime
