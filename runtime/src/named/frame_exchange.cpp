#include "runtime/src/named/frame_exchange.h"

#include <numeric>

namespace ddl::runtime {
namespace {

/// Bytes of the frames of all ranks together.
constexpr std::uint64_t kMaxFrames = std::uint64_t{1} << 30;

}  // namespace

tl::expected<std::vector<Frame>, Failure> exchange_frames(CollectiveBackend& backend, const Frame& own,
                                                          int ranks, double timeout_seconds) {
  const std::vector<std::uint8_t> bytes = own.to_bytes();
  const std::uint64_t length = bytes.size();
  std::vector<std::uint64_t> lengths(static_cast<std::size_t>(ranks));
  Request numbers;
  numbers.call = make_call(CallKind::kAllgather, 1, DDL_UINT64);
  numbers.element_size = sizeof length;
  numbers.send = reinterpret_cast<const std::byte*>(&length);
  numbers.recv = reinterpret_cast<std::byte*>(lengths.data());
  if (auto gathered = backend.run(numbers, CallDeadline::after(timeout_seconds)); !gathered)
    return tl::unexpected(gathered.error());
  const std::uint64_t total = std::accumulate(lengths.begin(), lengths.end(), std::uint64_t{0});
  // All ranks see the same lengths, so all fail alike.
  if (total > kMaxFrames)
    return failed(DDL_ERROR_INTERNAL,
                  "the ranks announce named tensors in " + std::to_string(total) + " bytes");

  std::vector<std::uint8_t> all(total);
  Request texts;
  texts.call = make_call(CallKind::kAllgatherv, total, DDL_UINT8);
  texts.call.counts = digest_of(lengths) | 1;
  texts.counts = lengths;
  texts.send = reinterpret_cast<const std::byte*>(bytes.data());
  texts.recv = reinterpret_cast<std::byte*>(all.data());
  if (auto gathered = backend.run(texts, CallDeadline::after(timeout_seconds)); !gathered)
    return tl::unexpected(gathered.error());
  std::vector<Frame> frames;
  std::size_t at = 0;
  for (const std::uint64_t of_rank : lengths) {
    auto frame = Frame::parse(std::span(all).subspan(at, of_rank), ranks);
    if (!frame) return failed(DDL_ERROR_INTERNAL, frame.error().message());
    frames.push_back(*std::move(frame));
    at += of_rank;
  }
  return frames;
}

}  // namespace ddl::runtime
