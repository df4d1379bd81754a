#include "runtime/src/named/tensor.h"

#include <array>
#include <charconv>

#include "base/text.h"

namespace ddl::runtime {
namespace {

std::string list_of(const std::vector<std::uint64_t>& numbers) {
  std::string text = "[";
  for (const std::uint64_t number : numbers) text += (text.size() > 1 ? ", " : "") + std::to_string(number);
  return text + "]";
}

/// Numbers that differ have texts that differ.
std::string shortest(double number) {
  std::array<char, 32> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), number).ptr;
  return {text.data(), end};
}

}  // namespace

std::string TensorTerms::describe() const {
  std::string text = std::string(call_kind_name(call.kind)) + "(";
  if (has_op(call.kind)) text += std::string(op_name(call.op)) + ", ";
  if (has_root(call.kind)) text += "root " + std::to_string(call.root) + ", ";
  text += dtype_name(call.dtype);
  if (!shape.empty()) {
    text += ", shape " + list_of(shape);
  } else if (!counts.empty()) {
    text += ", counts " + list_of(counts);
  } else if (call.kind != CallKind::kAllgatherv && call.kind != CallKind::kAlltoallv) {
    text += ", " + counted(static_cast<std::int64_t>(call.count), "element");
  }
  if (call.prescale != 1.0) text += ", prescale " + shortest(call.prescale);
  if (call.postscale != 1.0) text += ", postscale " + shortest(call.postscale);
  if (call.memory == Memory::kDevice) text += ", on a GPU";
  if (zeros_if_joined) text += ", zeros if joined";
  if (fails_if_joined) text += ", fails if joined";
  if (priority != 0) text += ", priority " + std::to_string(priority);
  if (!group.empty()) text += ", group \"" + group + "\" of " + std::to_string(group_size);
  return text + ")";
}

}  // namespace ddl::runtime
