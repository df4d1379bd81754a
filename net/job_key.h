// The secret that the processes of one job share: a process that knows it belongs to the job.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/fd.h"

namespace ddl::net {

inline constexpr std::size_t kJobKeyBytes = 32;

/// Owns the key's bytes on a page of its own that is left out of core dumps, reads as zeroes in a forked child and is
/// wiped at the end. Move-only.
class JobKey {
 public:
  /// From the system's random numbers.
  static Result<JobKey> random();
  /// Exactly kJobKeyBytes bytes.
  static Result<JobKey> from_bytes(std::span<const std::byte> bytes);
  /// 64 hexadecimal digits.
  static Result<JobKey> from_hex(std::string_view text);
  /// From a descriptor that a parent passed on: a memfd of kJobKeyBytes bytes, sealed against writing. It is made
  /// close-on-exec and stays open, so that it can be read again. An error if fd is anything else; then it is
  /// untouched.
  static Result<JobKey> from_memfd(int fd);

  /// The same key in a sealed memfd that from_memfd() takes; close-on-exec.
  Result<UniqueFd> to_memfd() const;
  /// For bootstraps that carry text. The caller's copy is the caller's to wipe.
  std::string to_hex() const;

  std::span<const std::byte> bytes() const { return {page_, kJobKeyBytes}; }

  JobKey(JobKey&& other) noexcept;
  JobKey& operator=(JobKey&& other) noexcept;
  JobKey(const JobKey&) = delete;
  JobKey& operator=(const JobKey&) = delete;
  ~JobKey();

 private:
  explicit JobKey(std::byte* page) : page_(page) {}
  static Result<JobKey> allocate();

  std::byte* page_ = nullptr;
};

/// Overwrites memory that held a secret; not optimised away.
void wipe(std::span<std::byte> memory);

/// Whether both are the same bytes. If their lengths are, the time that it takes does not tell how much of one is right.
bool is_same_secret(std::span<const std::byte> one, std::span<const std::byte> other);

}  // namespace ddl::net
