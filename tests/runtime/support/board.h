// A key-value store in memory that threads and forked processes share, instead of a launcher's.
#pragma once

#include <pthread.h>

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

#include "base/deadline.h"
#include "base/error.h"

namespace ddl::runtime::test {

/// Made before the ranks start; every rank, as a thread or as a forked child, uses the same object. Fixed capacity.
class Board {
 public:
  explicit Board(int ranks);
  ~Board();
  Board(const Board&) = delete;
  Board& operator=(const Board&) = delete;

  int size() const { return ranks_; }
  Status put(int rank, std::string_view key, std::string_view value);
  Result<std::string> get(int rank, std::string_view key);
  /// Returns when all ranks have called it.
  Status fence(Deadline deadline);

 private:
  struct Note {
    int rank = 0;
    std::array<char, 64> key{};
    std::array<char, 512> value{};
  };
  struct Shared {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    int arrived = 0;
    unsigned fences = 0;
    std::size_t notes = 0;
    std::array<Note, 1024> note{};
  };
  class Locked;

  int ranks_;
  Shared* shared_;
};

}  // namespace ddl::runtime::test
