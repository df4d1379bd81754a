#include "runtime/src/channel/exchange_wish.h"

#include "base/text.h"
#include "runtime/src/channel/segment_shape.h"

namespace ddl::runtime {

std::optional<ExchangeWish> ExchangeWish::parse(std::string_view text) {
  if (text == "flat") return ExchangeWish{Way::kFlat, 0};
  if (text == "groups") return ExchangeWish{Way::kGroups, 0};
  const auto width = parse_integer(text);
  if (!width || *width < 2 || *width > kMaxMembers) return std::nullopt;
  return ExchangeWish{Way::kGroups, static_cast<int>(*width)};
}

}  // namespace ddl::runtime
