// Takes the values of options one by one and remembers the first refusal.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "cli/command_line_error.h"
#include "cli/given_options.h"
#include "cli/option_table.h"

namespace ddl::cli {

class ValueReader {
 public:
  explicit ValueReader(const GivenOptions& given) : given_(given) {}

  bool has(OptionId id) const { return given_.has(id); }
  const GivenOptions& given() const { return given_; }
  const std::optional<CommandLineError>& refusal() const { return refusal_; }
  /// The first of several is kept.
  void refuse_once(std::string message, std::string hint);

  /// Leaves the target as it is if the option was not given; refuses more than one value.
  template <class Parse, class T>
  void take(OptionId id, Parse parse, T& target) {
    const std::vector<GivenValue>& values = given_[id];
    if (values.empty()) return;
    if (values.size() > 1) refuse_repeated(id);
    target = value_of(id, values.front(), parse(values.front().text));
  }
  /// One of the option's values; T{} if it is refused.
  template <class T>
  T value_of(OptionId id, const GivenValue& value, Result<T> parsed) {
    if (parsed) return std::move(*parsed);
    refuse_value(id, value, parsed.error());
    return T{};
  }
  /// Refuses both of them together.
  void exclude(OptionId one, OptionId other);

 private:
  void refuse_repeated(OptionId id);
  void refuse_value(OptionId id, const GivenValue& value, const Error& error);

  const GivenOptions& given_;
  std::optional<CommandLineError> refusal_;
};

}  // namespace ddl::cli
