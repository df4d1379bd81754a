// A store (ddl_store) of files in a folder that all ranks see, as threads, as processes, and on several hosts of one
// machine.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "ddl/ddl.h"

namespace ddl::conformance {

/// Each rank has its own, for one thread at a time.
class FileStore {
 public:
  /// The folder exists, and outlives this.
  explicit FileStore(std::string folder) : folder_(std::move(folder)) {}

  /// As libddl takes it, while this lives.
  ddl_store functions(double timeout_seconds = 60.0);
  /// The number of puts, or of gets, after which each further one fails; below 0: none.
  void fail_after(int puts, int gets) {
    puts_left_ = puts;
    gets_left_ = gets;
  }

 private:
  static constexpr std::int32_t kFailed = -7;

  std::int32_t put(const std::string& key, const std::string& value);
  std::int64_t get(const std::string& key, double seconds, void* value, std::uint64_t capacity);
  std::string path_of(const std::string& key) const;

  std::string folder_;
  int puts_left_ = -1;
  int gets_left_ = -1;
};

/// A new folder for stores, the same for all ranks of the job. Collective over the world, as is its removal by
/// remove_shared_folder(). parent: a folder that all ranks see.
std::string make_shared_folder(ddl_context* context, const std::string& parent);
void remove_shared_folder(ddl_context* context, const std::string& folder);

}  // namespace ddl::conformance
