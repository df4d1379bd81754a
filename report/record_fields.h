// The fields of a record in JSON, each described once for both directions. Only sources of report/ include this.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/deadline.h"

namespace ddl::report {

using Json = nlohmann::ordered_json;

/// The words of an enumeration, by its values.
template <class Enum, std::size_t size>
using Words = std::array<std::pair<Enum, const char*>, size>;

/// Writes the fields of a value into an object.
class FieldWriter {
 public:
  explicit FieldWriter(Json& json) : json_(json) {}
  static constexpr bool kReads = false;

  template <class T>
  void value(const char* name, const T& field) {
    json_[name] = field;
  }
  void value(const char* name, const Seconds& field) { json_[name] = field.value; }
  /// null unless it is known.
  template <class T>
  void known(const char* name, const T& field, bool is_known) {
    is_known ? value(name, field) : static_cast<void>(json_[name] = nullptr);
  }
  void text(const char* name, const std::string& field) { known(name, field, !field.empty()); }
  template <class T>
  void optional(const char* name, const std::optional<T>& field) {
    json_[name] = field ? Json(*field) : Json(nullptr);
  }
  template <class Enum, std::size_t size>
  void word(const char* name, const Enum& field, const Words<Enum, size>& words) {
    for (const auto& [value, word] : words)
      if (value == field) json_[name] = word;
  }
  /// visit(fields, one) describes the fields of each.
  template <class T, class Visit>
  void list(const char* name, std::vector<T>& field, Visit visit) {
    Json& array = json_[name] = Json::array();
    for (T& one : field) {
      array.push_back(Json::object());
      FieldWriter fields(array.back());
      visit(fields, one);
    }
  }

 private:
  Json& json_;
};

/// Reads them. A field that is not there, or null, is left as it is.
class FieldReader {
 public:
  explicit FieldReader(const Json& json) : json_(json) {
    if (!json.is_object()) throw std::invalid_argument("an object was expected in place of " + json.dump());
  }
  static constexpr bool kReads = true;

  template <class T>
  void value(const char* name, T& field) {
    if (const Json* const found = find(name)) field = found->get<T>();
  }
  void value(const char* name, Seconds& field) { value(name, field.value); }
  template <class T>
  void known(const char* name, T& field, bool /*is_known*/) {
    value(name, field);
  }
  void text(const char* name, std::string& field) { value(name, field); }
  template <class T>
  void optional(const char* name, std::optional<T>& field) {
    if (const Json* const found = find(name)) field = found->get<T>();
  }
  template <class Enum, std::size_t size>
  void word(const char* name, Enum& field, const Words<Enum, size>& words) {
    const Json* const found = find(name);
    if (found == nullptr) return;
    const auto word = found->get<std::string>();
    for (const auto& [value, known] : words) {
      if (known != word) continue;
      field = value;
      return;
    }
    throw std::invalid_argument(std::string(name) + ": \"" + word + "\" is unknown");
  }
  template <class T, class Visit>
  void list(const char* name, std::vector<T>& field, Visit visit) {
    const Json* const found = find(name);
    if (found == nullptr) return;
    if (!found->is_array()) throw std::invalid_argument(std::string(name) + " is not an array");
    for (const Json& one : *found) {
      FieldReader fields(one);
      visit(fields, field.emplace_back());
    }
  }

 private:
  const Json* find(const char* name) const {
    const auto found = json_.find(name);
    return found == json_.end() || found->is_null() ? nullptr : &*found;
  }
  const Json& json_;
};

}  // namespace ddl::report
