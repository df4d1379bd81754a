#include "affinity/plan/binding_policy.h"

#include <array>
#include <utility>

namespace ddl::affinity {
namespace {

constexpr std::array<std::pair<BindTo, const char*>, 8> kBindToNames{{{BindTo::kAuto, "auto"},
                                                                      {BindTo::kGpu, "gpu"},
                                                                      {BindTo::kNuma, "numa"},
                                                                      {BindTo::kL3, "l3"},
                                                                      {BindTo::kSocket, "socket"},
                                                                      {BindTo::kCore, "core"},
                                                                      {BindTo::kPu, "pu"},
                                                                      {BindTo::kNone, "none"}}};

}  // namespace

std::optional<BindTo> parse_bind_to(std::string_view text) {
  for (const auto& [value, name] : kBindToNames) {
    if (text == name) return value;
  }
  return std::nullopt;
}

const char* name_of(BindTo bind_to) {
  for (const auto& [value, name] : kBindToNames) {
    if (value == bind_to) return name;
  }
  return "";
}

}  // namespace ddl::affinity
