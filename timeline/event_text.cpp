#include "timeline/event_text.h"

#include <array>
#include <charconv>
#include <cstring>

#include "contract/ddl_names.h"
#include "contract/rank_record.h"
#include "timeline/json_text.h"

namespace ddl::timeline {
namespace {

using contract::Event;
using Kind = Event::Kind;

/// The calls that combine elements come first in kCallNames.
constexpr std::uint8_t kLastWithOp = 4;
static_assert(std::string_view(contract::kCallNames[kLastWithOp]) == "scan");

std::string_view name_of(const Event& event) {
  return {event.name.data(), ::strnlen(event.name.data(), event.name.size())};
}

}  // namespace

KindTraits traits_of(Kind kind) {
  switch (kind) {
    case Kind::kNone: break;
    case Kind::kCall: return {TrackGroup::kProgram, "call", "call", true, true, false};
    case Kind::kTensor: return {TrackGroup::kTensors, "tensor", "tensor", false, true, false};
    case Kind::kAgreement: return {TrackGroup::kEngine, "engine", "agreement", false, false, false};
    case Kind::kBatch: return {TrackGroup::kEngine, "engine", "batch", true, true, false};
    case Kind::kPacking: return {TrackGroup::kEngine, "engine", "packing", false, true, false};
    case Kind::kUnpacking: return {TrackGroup::kEngine, "engine", "unpacking", false, true, false};
    case Kind::kExchange: return {TrackGroup::kWire, "wire", "exchange", true, true, false};
    case Kind::kWait: return {TrackGroup::kProgram, "wait", "wait", false, false, false};
    case Kind::kRange: return {TrackGroup::kProgram, "program", "range", false, false, false};
    case Kind::kMark: return {TrackGroup::kProgram, "program", "mark", false, false, true};
    case Kind::kStep: return {TrackGroup::kEngine, "engine", "step", false, false, true};
  }
  return {TrackGroup::kProgram, "unknown", "unknown", false, false, false};
}

std::string set_name(std::uint32_t generation) {
  // The world's number counts the contexts that the process has made; that of another set is a hash
  // (Membership::generation), hardly ever so small.
  if (generation <= 1) return "world";
  if (generation < 256) return "world " + std::to_string(generation);
  std::array<char, 8> digits{};
  const char* const end = std::to_chars(digits.data(), digits.data() + digits.size(), generation, 16).ptr;
  const auto count = static_cast<std::size_t>(end - digits.data());
  return "set " + std::string(digits.size() - count, '0').append(digits.data(), count);
}

const char* call_name(const Event& event) {
  return event.call_kind == 0 ? nullptr : contract::name_or_null(contract::kCallNames, event.call_kind);
}

std::string_view title_of(const Event& event) {
  const KindTraits traits = traits_of(event.kind);
  if (traits.is_call) {
    if (const char* name = call_name(event)) return name;
  }
  if (event.kind == Kind::kTensor || event.kind == Kind::kRange || event.kind == Kind::kMark) {
    if (const auto name = name_of(event); !name.empty()) return name;
  }
  return traits.name;
}

bool is_unfinished(const Event& event) {
  return event.end == Event::kOpen && !traits_of(event.kind).is_moment;
}

void append_arguments(std::string& text, const Event& event, std::string_view unfinished) {
  const KindTraits traits = traits_of(event.kind);
  JsonObject arguments(text);
  const auto add_name = [&](std::string_view key, const char* name) {
    if (name != nullptr) arguments.add(key, name);
  };
  const auto own = name_of(event);
  if (event.kind == Kind::kBatch && !own.empty()) arguments.add("first_tensor", own);
  if (event.kind == Kind::kWait && !own.empty()) arguments.add("tensor", own);
  if (event.kind == Kind::kBatch) arguments.add("tensors", std::uint64_t{event.tensors});
  if (event.kind == Kind::kTensor) add_name("call", call_name(event));
  if (traits.has_bytes) arguments.add("bytes", event.bytes);
  if (event.call_kind >= 1 && event.call_kind <= kLastWithOp)
    add_name("op", contract::name_or_null(contract::kOpNames, event.op));
  add_name("dtype", contract::dtype_name_or_null(event.dtype));
  if (event.algorithm != 0)
    add_name("algorithm", contract::name_or_null(contract::kAlgorithmNames, event.algorithm));
  if (traits.group != TrackGroup::kProgram || event.kind == Kind::kCall)
    arguments.add("set", set_name(event.generation));
  if (event.call != 0) arguments.add("call_number", event.call);
  if (event.status != 0) {
    // A negative number is no index.
    const char* name = contract::name_or_null(contract::kStatusNames, static_cast<std::size_t>(event.status));
    add_name("status", name != nullptr ? name : "unknown status");
  }
  if (!unfinished.empty()) arguments.add("unfinished", unfinished);
  arguments.close();
}

}  // namespace ddl::timeline
