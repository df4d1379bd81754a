// What the ranks of a job have put, by PMI-1's key-value space, as far as this node knows.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "launcher/message/message.h"

namespace ddl::launcher {

class PmiSpace {
 public:
  /// Known here and nowhere else.
  void keep(std::string key, std::string value) { pairs_.insert_or_assign(std::move(key), std::move(value)); }
  /// Of a rank of this node. False: key or value is empty or longer than PMI-1 has them, or there are too many.
  bool put(std::string_view key, std::string_view value);
  /// nullptr if nobody has put it.
  const std::string* get(std::string_view key) const;

  /// What ranks of this node have put since the last time.
  std::vector<message::PmiPair> take_new() { return std::exchange(new_, {}); }
  /// What the ranks of all nodes have put.
  void add(const std::vector<message::PmiPair>& pairs);

 private:
  std::map<std::string, std::string, std::less<>> pairs_;
  std::vector<message::PmiPair> new_;
};

}  // namespace ddl::launcher
