// A message that is sent or received, before it is complete. Part of ddl.hpp.
#ifndef DDL_MESSAGE_HPP
#define DDL_MESSAGE_HPP

#include <cstdint>
#include <memory>

#include "ddl/ddl.h"
#include "ddl/error.hpp"
#include "ddl/future.hpp"

namespace ddl {

/// Of a receive.
inline constexpr int any_rank = DDL_ANY_RANK;
inline constexpr int any_tag = DDL_ANY_TAG;

/// Movable, not copyable. The buffer belongs to the message until it is complete. The destructor waits for it.
class Message {
 public:
  /// Whether wait() would return at once.
  bool is_ready() const { return handle_.is_ready(); }
  /// Returns when the message is complete, once, with the rank of the process set that it came from, or went to. Throws
  /// what went wrong.
  int wait() {
    handle_.wait();
    return static_cast<int>(*other_);
  }

 private:
  friend class Context;
  explicit Message(int other) : other_(std::make_unique<std::int32_t>(other)) {}

  std::unique_ptr<std::int32_t> other_;  ///< libddl writes it, so the handle is destroyed before it
  detail::Handle handle_;
};

}  // namespace ddl

#endif  // DDL_MESSAGE_HPP
