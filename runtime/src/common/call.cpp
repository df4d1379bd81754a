#include "runtime/src/common/call.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <sstream>
#include <utility>

#include "base/text.h"
#include "contract/event_ring.h"
#include "contract/rank_record.h"

namespace ddl::runtime {
namespace {

// The names of contract/ddl_names.h have the numbers of ddl.h.
static_assert(contract::kDtypeNames.size() == std::size(kDtypes));
static_assert(contract::dtype_name_or_null(DDL_INT8) == std::string_view("int8") &&
              contract::dtype_name_or_null(DDL_UINT64) == std::string_view("uint64") &&
              contract::dtype_name_or_null(DDL_FLOAT8_E5M2FNUZ) == std::string_view("float8_e5m2fnuz") &&
              contract::dtype_name_or_null(DDL_BFLOAT16) == std::string_view("bfloat16") &&
              contract::dtype_name_or_null(DDL_FLOAT32) == std::string_view("float32") &&
              contract::dtype_name_or_null(DDL_BOOL) == std::string_view("bool"));
static_assert(std::all_of(std::begin(kDtypes), std::end(kDtypes),
                          [](ddl_dtype dtype) { return contract::dtype_name_or_null(dtype) != nullptr; }));
static_assert(contract::kOpNames.size() == DDL_ADASUM + 1);
static_assert(contract::kOpNames[DDL_BIT_AND] == std::string_view("bitwise and"));

/// The finaliser of splitmix64 (Steele, Lea, Flood 2014): a bijection in which every input bit moves every output
/// bit.
std::uint64_t mix(std::uint64_t x) {
  x += 0x9E3779B97F4A7C15u;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

/// "prescale 0.5, " unless the scale is 1.
std::string scale_text(const char* name, double scale) {
  if (scale == 1.0) return "";
  std::ostringstream text;
  text << name << " " << scale << ", ";
  return text.str();
}

std::string memory_text(const Call& call) {
  if (call.memory == Memory::kCpu) return "";
  const std::size_t chunk = std::size_t{1} << call.log2_chunk_bytes;
  const bool is_usual = call.log2_chunk_bytes == 0 || chunk == kUsualGpuChunkBytes;
  return is_usual ? " on a GPU" : " on a GPU, in chunks of " + std::to_string(chunk) + " bytes";
}

/// "sum, float32, 1000 elements"; "" for a barrier.
std::string arguments(const Call& call) {
  if (call.kind == CallKind::kTimeline) return call.count == 1 ? "start" : "stop";
  if (call.kind == CallKind::kBarrier || call.kind == CallKind::kAgree || call.kind == CallKind::kNone)
    return "";
  std::string text;
  if (has_op(call.kind)) {
    text += std::string(op_name(call.op)) + ", " + scale_text("prescale", call.prescale) +
            scale_text("postscale", call.postscale);
  }
  if (call.kind == CallKind::kTransfer) {
    text += "from rank " + std::to_string(call.root) + ", ";
  } else if (has_root(call.kind)) {
    text += "root " + std::to_string(call.root) + ", ";
  }
  if (call.kind == CallKind::kMakeSets) return text + counted(static_cast<std::int64_t>(call.count), "rank");
  if (call.algorithm != Algorithm::kAuto) text += std::string("by ") + algorithm_name(call.algorithm) + ", ";
  text += dtype_name(call.dtype);
  if (call.kind == CallKind::kAlltoallv) return text;
  text += ", " + counted(static_cast<std::int64_t>(call.count), "element");
  if (call.counts != 0) {
    // The numbers themselves are too many for a message; the digest shows that they differ.
    std::ostringstream digest;
    digest << " in parts #" << std::hex << (call.counts & 0xFFFF'FFFF);
    text += digest.str();
  }
  return text;
}

/// The pairs that a user may name.
constexpr std::pair<CallKind, Algorithm> kNamed[] = {
    {CallKind::kAllreduce, Algorithm::kWhole},   {CallKind::kAllreduce, Algorithm::kSlices},
    {CallKind::kAllreduce, Algorithm::kTree},    {CallKind::kAllreduce, Algorithm::kUnits},
    {CallKind::kAllreduce, Algorithm::kHalving}, {CallKind::kAllreduce, Algorithm::kRing},
    {CallKind::kReduce, Algorithm::kWhole},      {CallKind::kReduce, Algorithm::kSlices},
    {CallKind::kReduce, Algorithm::kTree},       {CallKind::kReduce, Algorithm::kUnits},
    {CallKind::kReduce, Algorithm::kHalving},
};

}  // namespace

const char* call_kind_name(CallKind kind) {
  static_assert(contract::kCallNames.size() == static_cast<std::size_t>(CallKind::kTimeline) + 1);
  const auto number = static_cast<std::size_t>(kind);
  return number < contract::kCallNames.size() ? contract::kCallNames[number] : "unknown collective";
}

std::uint64_t Call::fingerprint() const {
  // 6 bits for the kind, 5 for the operation and 4 for the algorithm: more than there are.
  const std::uint64_t what = static_cast<std::uint64_t>(kind) | static_cast<std::uint64_t>(op) << 6 |
                             static_cast<std::uint64_t>(algorithm) << 11 |
                             static_cast<std::uint64_t>(memory) << 15 |
                             static_cast<std::uint64_t>(dtype) << 16 |
                             static_cast<std::uint64_t>(static_cast<std::uint32_t>(root)) << 32;
  std::uint64_t print = mix(mix(what) ^ count);
  if (counts != 0) print = mix(print ^ counts);
  if (log2_chunk_bytes != 0) print = mix(print ^ log2_chunk_bytes);
  if (prescale != 1.0 || postscale != 1.0) {
    print =
        mix(mix(print ^ std::bit_cast<std::uint64_t>(prescale)) ^ std::bit_cast<std::uint64_t>(postscale));
  }
  return print;
}

std::string Call::signature() const {
  return std::string(call_kind_name(kind)) + "(" + arguments(*this) + ")" + memory_text(*this);
}

std::string Call::describe() const {
  const std::string text = arguments(*this);
  return std::string(call_kind_name(kind)) + " #" + std::to_string(number) +
         (text.empty() ? "" : " (" + text + ")") + memory_text(*this);
}

std::uint64_t digest_of(std::span<const std::uint64_t> numbers) {
  std::uint64_t digest = numbers.size();
  for (const std::uint64_t number : numbers) digest = mix(digest ^ number);
  return digest;
}

std::uint64_t digest_of(std::string_view text) {
  std::uint64_t digest = text.size();
  for (std::size_t at = 0; at < text.size(); at += sizeof digest) {
    std::uint64_t word = 0;
    std::memcpy(&word, text.data() + at, std::min(sizeof word, text.size() - at));
    digest = mix(digest ^ word);
  }
  return digest;
}

const char* algorithm_name(Algorithm algorithm) {
  if (algorithm == Algorithm::kAuto) return "auto";
  return algorithm <= Algorithm::kRing ? contract::kAlgorithmNames[static_cast<std::size_t>(algorithm)]
                                       : "unknown algorithm";
}

Result<AlgorithmOverrides> AlgorithmOverrides::parse(std::string_view text) {
  AlgorithmOverrides overrides;
  for (const std::string_view part : split(text, ',')) {
    const auto pair = split(part, '=');
    bool is_known = false;
    for (const auto& [kind, algorithm] : kNamed) {
      if (pair.size() != 2 || trim(pair[0]) != call_kind_name(kind) ||
          trim(pair[1]) != algorithm_name(algorithm))
        continue;
      overrides.chosen_[static_cast<std::size_t>(kind)] = algorithm;
      is_known = true;
    }
    if (!is_known) {
      return fail(ErrorCode::kInvalidArgument, "\"" + std::string(part) +
                                                   "\" is not allreduce or reduce, \"=\", and whole or "
                                                   "slices (one host), tree, units or halving (several; "
                                                   "allreduce also ring)");
    }
  }
  return overrides;
}

}  // namespace ddl::runtime
