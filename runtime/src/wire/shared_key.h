// The key by which ranks prove to each other that they belong to one job: ddlrun's, or one that rank 0 makes.
#pragma once

#include <optional>
#include <string>

#include "base/deadline.h"
#include "base/error.h"
#include "net/job_key.h"
#include "runtime/src/bootstrap/bootstrap.h"

namespace ddl::runtime {

/// A key of the ranks of a bootstrap. Not thread-safe.
class SharedKey {
 public:
  /// name: of the key in the bootstrap, where ddlrun gives none.
  explicit SharedKey(std::string name) : name_(std::move(name)) {}

  /// Before the fence: takes the inherited key (inherited: its descriptor), or, on rank 0, makes one and publishes it.
  Status publish(Bootstrap& bootstrap, std::optional<int> inherited);
  /// After the fence: gets the key of rank 0, if this rank has none yet.
  Status fetch(Bootstrap& bootstrap, Deadline deadline);

  bool is_known() const { return key_.has_value(); }
  const net::JobKey& operator*() const { return *key_; }

 private:
  std::string name_;
  std::optional<net::JobKey> key_;
};

}  // namespace ddl::runtime
