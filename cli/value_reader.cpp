#include "cli/value_reader.h"

#include "base/text.h"

namespace ddl::cli {

namespace {

std::string texts_of(const std::vector<GivenValue>& values) {
  std::vector<std::string> texts;
  for (const GivenValue& value : values) texts.push_back(value.text);
  return join(texts, ", ");
}

}  // namespace

void ValueReader::refuse_once(std::string message, std::string hint) {
  if (!refusal_) refusal_ = CommandLineError{std::move(message), std::move(hint)};
}

void ValueReader::refuse_repeated(OptionId id) {
  const std::vector<GivenValue>& values = given_[id];
  refuse_once(given_.origin(id) + display_name(entry_of(id)) + " was given " + std::to_string(values.size()) +
                  " times: " + texts_of(values),
              "give it once");
}

void ValueReader::refuse_value(OptionId id, const GivenValue& value, const Error& error) {
  const OptionEntry& entry = entry_of(id);
  refuse_once((value.where.empty() ? "" : value.where + ": ") + display_name(entry) + ": " + error.message(),
              usage_line(entry));
}

void ValueReader::exclude(OptionId one, OptionId other) {
  if (!has(one) || !has(other)) return;
  refuse_once(given_.origin(other) + display_name(entry_of(one)) + " and " + display_name(entry_of(other)) +
                  " contradict each other",
              "omit one of them");
}

}  // namespace ddl::cli
