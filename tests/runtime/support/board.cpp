#include "runtime/support/board.h"

#include <sys/mman.h>

#include <cstring>
#include <new>

namespace ddl::runtime::test {

class Board::Locked {
 public:
  explicit Locked(Shared& shared) : shared_(shared) { ::pthread_mutex_lock(&shared_.mutex); }
  ~Locked() { ::pthread_mutex_unlock(&shared_.mutex); }
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;

 private:
  Shared& shared_;
};

Board::Board(int ranks) : ranks_(ranks) {
  void* memory = ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  DDL_CHECK(memory != MAP_FAILED, "mmap");
  shared_ = new (memory) Shared{};
  pthread_mutexattr_t mutex;
  ::pthread_mutexattr_init(&mutex);
  ::pthread_mutexattr_setpshared(&mutex, PTHREAD_PROCESS_SHARED);
  ::pthread_mutex_init(&shared_->mutex, &mutex);
  ::pthread_mutexattr_destroy(&mutex);
  pthread_condattr_t condition;
  ::pthread_condattr_init(&condition);
  ::pthread_condattr_setpshared(&condition, PTHREAD_PROCESS_SHARED);
  ::pthread_condattr_setclock(&condition, CLOCK_MONOTONIC);
  ::pthread_cond_init(&shared_->changed, &condition);
  ::pthread_condattr_destroy(&condition);
}

// The condition variable is not destroyed: if a rank was killed while it waited, that would block for ever.
Board::~Board() { ::munmap(shared_, sizeof(Shared)); }

Status Board::put(int rank, std::string_view key, std::string_view value) {
  const Locked locked(*shared_);
  DDL_CHECK(shared_->notes < shared_->note.size(), "the board is full");
  Note& note = shared_->note[shared_->notes++];
  DDL_CHECK(key.size() < note.key.size() && value.size() < note.value.size(), std::string(value));
  note.rank = rank;
  std::memcpy(note.key.data(), key.data(), key.size());
  std::memcpy(note.value.data(), value.data(), value.size());
  return {};
}

Result<std::string> Board::get(int rank, std::string_view key) {
  const Locked locked(*shared_);
  for (std::size_t i = 0; i < shared_->notes; ++i) {
    const Note& note = shared_->note[i];
    if (note.rank == rank && key == note.key.data()) return std::string(note.value.data());
  }
  return fail(ErrorCode::kNotFound,
              "rank " + std::to_string(rank) + " put nothing under " + std::string(key));
}

Status Board::fence(Deadline deadline) {
  const Locked locked(*shared_);
  const unsigned fence = shared_->fences;
  if (++shared_->arrived == ranks_) {
    shared_->arrived = 0;
    ++shared_->fences;
    ::pthread_cond_broadcast(&shared_->changed);
    return {};
  }
  while (shared_->fences == fence) {
    if (deadline.is_never()) {
      ::pthread_cond_wait(&shared_->changed, &shared_->mutex);
      continue;
    }
    const auto when = deadline.when().time_since_epoch();
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(when);
    const timespec absolute{static_cast<time_t>(seconds.count()),
                            static_cast<long>(std::chrono::nanoseconds(when - seconds).count())};
    if (::pthread_cond_timedwait(&shared_->changed, &shared_->mutex, &absolute) == ETIMEDOUT) {
      return fail(ErrorCode::kTimeout, "not all ranks came to the fence");
    }
  }
  return {};
}

}  // namespace ddl::runtime::test
