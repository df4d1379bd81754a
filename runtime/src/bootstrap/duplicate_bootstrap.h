// Lets the two sets of connections of a process set, those of ordered calls and those of named tensors, use one
// bootstrap, from two threads.
#pragma once

#include <memory>
#include <mutex>

#include "runtime/src/bootstrap/bootstrap.h"

namespace ddl::runtime {

/// The bootstrap of the first connections: put() and get() exclude those of the duplicate.
class SharedBootstrap final : public Bootstrap {
 public:
  explicit SharedBootstrap(std::unique_ptr<Bootstrap> own) : own_(std::move(own)) {}

  const char* name() const override { return own_->name(); }
  const Membership& membership() const override { return own_->membership(); }
  Status put(std::string_view key, std::string_view value) override {
    const std::lock_guard lock(mutex_);
    return own_->put(key, value);
  }
  /// Before any other thread uses this.
  Status fence(Deadline deadline) override { return own_->fence(deadline); }
  Result<std::string> get(int rank, std::string_view key, Deadline deadline) override {
    const std::lock_guard lock(mutex_);
    return own_->get(rank, key, deadline);
  }
  void notify_launcher(int event) override {
    const std::lock_guard lock(mutex_);
    own_->notify_launcher(event);
  }
  void abort_job(int code, const std::string& text) override { own_->abort_job(code, text); }
  Status leave() override { return own_->leave(); }

 private:
  std::unique_ptr<Bootstrap> own_;
  std::mutex mutex_;
};

/// The same for the second connections. Its membership has another generation, which is part of all keys.
class DuplicateBootstrap final : public Bootstrap {
 public:
  /// first outlives this.
  explicit DuplicateBootstrap(Bootstrap& first) : first_(first), membership_(first.membership()) {
    membership_.generation ^= 0x8000'0000;
  }

  const char* name() const override { return first_.name(); }
  const Membership& membership() const override { return membership_; }
  Status put(std::string_view key, std::string_view value) override { return first_.put(key, value); }
  /// The first one's fence serves both.
  Status fence(Deadline) override { return {}; }
  Result<std::string> get(int rank, std::string_view key, Deadline deadline) override {
    return first_.get(rank, key, deadline);
  }
  void notify_launcher(int) override {}
  Status leave() override { return {}; }

 private:
  Bootstrap& first_;
  Membership membership_;
};

}  // namespace ddl::runtime
