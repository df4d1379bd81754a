// What one rank has put, by key, for bootstraps that hand it on themselves.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "base/error.h"

namespace ddl::runtime {

class PutValues {
 public:
  void put(std::string_view key, std::string_view value) {
    values_.insert_or_assign(std::string(key), std::string(value));
  }
  void clear() { values_.clear(); }

  /// rank: whose values these are, for the error's sentence. kNotFound.
  Result<std::string> get(int rank, std::string_view key) const;

  /// As one text, for the other ranks.
  std::string text() const;
  /// Adds what another rank's text() says, in the place of what was there under the same keys. kProtocol.
  Status add(std::string_view text);

 private:
  std::map<std::string, std::string, std::less<>> values_;
};

}  // namespace ddl::runtime
