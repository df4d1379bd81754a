// A collective call in the form that the ranks compare, and the element types and operations that it names.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <span>
#include <string>
#include <string_view>

#include "base/error.h"
#include "contract/ddl_names.h"
#include "ddl/ddl.h"

namespace ddl::runtime {

// Element types and operations of ddl.h: sizes, names, and what goes with what.

/// Every type; the first 13 in the order of the numbers 0 to 12 that version 0.1 had for them.
constexpr ddl_dtype kDtypes[] = {
    DDL_INT32, DDL_INT64, DDL_FLOAT32, DDL_FLOAT64, DDL_UINT8, DDL_INT8, DDL_UINT16, DDL_INT16, DDL_UINT32,
    DDL_UINT64, DDL_FLOAT16, DDL_BFLOAT16, DDL_BOOL,
    // Not in version 0.1:
    DDL_FLOAT8_E4M3FN, DDL_FLOAT8_E5M2, DDL_FLOAT8_E4M3FNUZ, DDL_FLOAT8_E5M2FNUZ};
inline constexpr ddl_dtype kDtypesOfVersion01 = 13;

/// The number that this version has for a type. Programs that were compiled with version 0.1 use its numbers; only
/// the C functions know these and map them. A number that version 0.1 did not have is returned unchanged.
constexpr ddl_dtype current_dtype(ddl_dtype dtype) {
  return dtype >= 0 && dtype < kDtypesOfVersion01 ? kDtypes[dtype] : dtype;
}

constexpr bool is_float8(ddl_dtype dtype) {
  return dtype >= DDL_FLOAT8_E4M3FN && dtype <= DDL_FLOAT8_E5M2FNUZ;
}
/// The numbers that ddl.h reserves for further 8-bit floats.
constexpr bool is_reserved_dtype(ddl_dtype dtype) { return dtype > DDL_FLOAT8_E5M2FNUZ && dtype <= 0x30F; }

/// Bytes of one element; 0 for a type that does not exist.
constexpr std::size_t element_size(ddl_dtype dtype) {
  switch (dtype) {
    case DDL_UINT8:
    case DDL_INT8:
    case DDL_FLOAT8_E4M3FN:
    case DDL_FLOAT8_E5M2:
    case DDL_FLOAT8_E4M3FNUZ:
    case DDL_FLOAT8_E5M2FNUZ:
    case DDL_BOOL: return 1;
    case DDL_UINT16:
    case DDL_INT16:
    case DDL_FLOAT16:
    case DDL_BFLOAT16: return 2;
    case DDL_UINT32:
    case DDL_INT32:
    case DDL_FLOAT32: return 4;
    case DDL_UINT64:
    case DDL_INT64:
    case DDL_FLOAT64: return 8;
    default: return 0;
  }
}

/// The same for a type that has been checked: never 0.
inline std::size_t known_element_size(ddl_dtype dtype) {
  const std::size_t size = element_size(dtype);
  DDL_CHECK(size != 0, std::to_string(dtype));
  return size;
}

constexpr const char* dtype_name(ddl_dtype dtype) {
  const char* name = contract::dtype_name_or_null(static_cast<std::uint32_t>(dtype));
  return name == nullptr ? "unknown type" : name;
}

/// nullptr for an operation that does not exist.
constexpr const char* op_name_or_null(ddl_op op) {
  return contract::name_or_null(contract::kOpNames, static_cast<std::size_t>(op));
}

constexpr const char* op_name(ddl_op op) {
  const char* name = op_name_or_null(op);
  return name == nullptr ? "unknown operation" : name;
}

constexpr bool is_floating(ddl_dtype dtype) {
  return is_float8(dtype) || dtype == DDL_FLOAT16 || dtype == DDL_BFLOAT16 || dtype == DDL_FLOAT32 ||
         dtype == DDL_FLOAT64;
}

/// Whether elements of this type can be combined so; both exist.
constexpr bool op_applies(ddl_op op, ddl_dtype dtype) {
  switch (op) {
    case DDL_SUM:
    case DDL_AVERAGE:
    case DDL_PRODUCT: return dtype != DDL_BOOL;
    case DDL_MIN:
    case DDL_MAX: return true;
    case DDL_ADASUM: return is_floating(dtype) && !is_float8(dtype);
    default: return !is_floating(dtype);
  }
}

/// The type of partial results, which combine the elements of some ranks: wide enough that only the last step rounds,
/// or truncates an average of integers.
constexpr ddl_dtype partial_dtype(ddl_dtype dtype, ddl_op op) {
  switch (dtype) {
    case DDL_FLOAT8_E4M3FN:
    case DDL_FLOAT8_E5M2:
    case DDL_FLOAT8_E4M3FNUZ:
    case DDL_FLOAT8_E5M2FNUZ:
    case DDL_FLOAT16:
    case DDL_BFLOAT16: return DDL_FLOAT32;
    case DDL_INT8:
    case DDL_INT16:
    case DDL_INT32: return op == DDL_AVERAGE ? DDL_INT64 : dtype;
    case DDL_UINT8:
    case DDL_UINT16:
    case DDL_UINT32: return op == DDL_AVERAGE ? DDL_UINT64 : dtype;
    default: return dtype;
  }
}

// The call: what must be the same on all ranks.

enum class CallKind : std::uint8_t {
  kNone = 0,
  kAllreduce,
  kReduce,
  kReduceScatter,
  kScan,
  kBroadcast,
  kAllgather,
  kAllgatherv,
  kGather,
  kScatter,
  kAlltoall,
  kAlltoallv,
  kTransfer,  ///< of a pair: what one sends, the other receives
  kBarrier,
  kMakeSets,  ///< the exchange in which process sets are made
  kAgree,     ///< the exchange in which ranks begin to agree on named tensors
  kTimeline,  ///< the exchange in which ranks begin (count 1) or end (0) a timeline
};

/// "allreduce".
const char* call_kind_name(CallKind kind);
/// Whether elements are combined.
constexpr bool has_op(CallKind kind) { return kind >= CallKind::kAllreduce && kind <= CallKind::kScan; }
/// Whether one rank is the root (of a transfer: the sender).
constexpr bool has_root(CallKind kind) {
  return kind == CallKind::kReduce || kind == CallKind::kBroadcast || kind == CallKind::kGather ||
         kind == CallKind::kScatter || kind == CallKind::kTransfer;
}

// Which algorithm executes a call (collective/algorithm.h chooses). Users name them as contract::kAlgorithmNames does.

enum class Algorithm : std::uint8_t {
  kAuto = 0,  ///< the table's choice
  // One host.
  kWhole = 1,   ///< every rank combines all inputs itself
  kSlices = 2,  ///< every rank combines one slice, then all gather the slices
  // Several hosts.
  kTree = 3,     ///< complete values are sent along the canonical tree
  kUnits = 4,    ///< every host combines one unit of all values, then all gather the units
  kHalving = 5,  ///< along the canonical tree, half as much in each step, and back
  /// Units go around from neighbour to neighbour. Only if the user names it; its order of combination is not the tree's.
  kRing = 6,
};

/// "slices".
const char* algorithm_name(Algorithm algorithm);

/// How a call was executed, for its event: an Algorithm, or one of these. The numbers are those of
/// contract::kAlgorithmNames.
enum class Path : std::uint8_t {
  kNone = 0,
  kHeap = 7,    ///< straight between buffers in the shared heap
  kBlocks = 8,  ///< blocks are copied through the staging
  kMpi = 9,
  kNccl = 10,
  kIpc = 11,  ///< in the memory of a GPU that the ranks share
};
constexpr Path path_of(Algorithm algorithm) { return static_cast<Path>(algorithm); }

/// The user's choices instead of the table's: "allreduce=halving,reduce=tree". An algorithm that is not for the
/// number of hosts is ignored, and the table's choice holds.
class AlgorithmOverrides {
 public:
  /// An error names the invalid part and the valid choices.
  static Result<AlgorithmOverrides> parse(std::string_view text);
  Algorithm of(CallKind kind) const { return chosen_[static_cast<std::size_t>(kind)]; }

 private:
  std::array<Algorithm, 16> chosen_{};
};

/// Where the buffers of a call lie.
enum class Memory : std::uint8_t {
  kCpu = 0,
  kDevice = 1,  ///< of a GPU
};

/// Memory of a GPU goes through CPU memory in chunks of this size, unless the user says otherwise: so large that a copy
/// takes much longer than it takes to begin one.
inline constexpr std::size_t kUsualGpuChunkBytes = std::size_t{2} << 20;

/// Plain data: it lies in shared memory, beside the flag line of the rank that makes the call. Fields that a kind of
/// call does not have keep these defaults.
struct Call {
  CallKind kind = CallKind::kNone;
  Algorithm algorithm = Algorithm::kAuto;  ///< the one that the user has named
  Memory memory = Memory::kCpu;
  std::uint8_t log2_chunk_bytes = 0;  ///< if memory of a GPU goes through CPU memory
  ddl_op op = DDL_SUM;
  ddl_dtype dtype = 0;  ///< as current_dtype() gives it
  std::int32_t root = 0;
  std::uint64_t count = 0;   ///< elements; if every rank has its own number, their sum
  std::uint64_t counts = 0;  ///< digest_of() the ranks' numbers
  double prescale = 1.0;
  double postscale = 1.0;
  std::uint64_t number = 0;  ///< of the call on its channel, from 1; not compared

  /// Whether everything but the number is the same.
  bool operator==(const Call& other) const {
    return kind == other.kind && op == other.op && dtype == other.dtype && root == other.root &&
           count == other.count && counts == other.counts && prescale == other.prescale &&
           postscale == other.postscale && algorithm == other.algorithm && memory == other.memory &&
           log2_chunk_bytes == other.log2_chunk_bytes;
  }
  /// A 64-bit hash of everything but the number: the same for equal calls.
  std::uint64_t fingerprint() const;
  /// "allreduce(sum, float32, 1000 elements)"; on memory of a GPU, " on a GPU" follows.
  std::string signature() const;
  /// "allreduce #17 (sum, float32, 1000 elements)".
  std::string describe() const;
};
static_assert(sizeof(Call) == 56);

inline Call make_call(CallKind kind, std::uint64_t count, ddl_dtype dtype, ddl_op op = DDL_SUM,
                      std::int32_t root = 0) {
  return {.kind = kind, .op = op, .dtype = dtype, .root = root, .count = count};
}

/// A 64-bit hash of numbers and their order.
std::uint64_t digest_of(std::span<const std::uint64_t> numbers);
/// A 64-bit hash of a text, the same in every build: std::hash is another one in another C++ library.
std::uint64_t digest_of(std::string_view text);

}  // namespace ddl::runtime
