#include "runtime/src/device/launch_order.h"

#include <algorithm>
#include <utility>

namespace ddl::runtime {
namespace {

constexpr unsigned kRankBits = 20;

}  // namespace

LaunchOrder::Place::Place(LaunchOrder& order) : order_(order) {
  const std::lock_guard alone(order_.alone_);
  const std::lock_guard lock(order_.mutex_);
  order_.places_[this] = {};
}

LaunchOrder::Place::~Place() {
  const std::lock_guard lock(order_.mutex_);
  order_.places_.erase(this);
}

void LaunchOrder::Place::set(Device& device, std::shared_ptr<const DeviceStream> stream) {
  const std::lock_guard lock(order_.mutex_);
  order_.places_[this] = {&device, std::move(stream)};
}

std::unique_lock<std::mutex> LaunchOrder::Place::alone() const {
  std::unique_lock alone(order_.alone_);
  const std::lock_guard lock(order_.mutex_);
  if (order_.places_.size() > 1) alone.unlock();
  return alone;
}

std::vector<LaunchOrder::Stream> LaunchOrder::Place::others() const {
  const std::lock_guard lock(order_.mutex_);
  std::vector<Stream> streams;
  for (const auto& [place, stream] : order_.places_) {
    if (place != this && stream.device != nullptr) streams.push_back(stream);
  }
  return streams;
}

LaunchOrder::Turn::Turn(LaunchOrder& order, int job_rank) : order_(order) {
  const std::lock_guard lock(order_.mutex_);
  proposal_ = ++order_.clock_ << kRankBits | static_cast<std::uint64_t>(job_rank);
  order_.turns_[this] = proposal_;
}

LaunchOrder::Turn::~Turn() {
  {
    const std::lock_guard lock(order_.mutex_);
    order_.turns_.erase(this);
  }
  order_.changed_.notify_all();
}

void LaunchOrder::Turn::wait(std::uint64_t agreed) {
  std::unique_lock lock(order_.mutex_);
  order_.clock_ = std::max(order_.clock_, agreed >> kRankBits);
  order_.turns_[this] = agreed;
  order_.changed_.notify_all();
  order_.changed_.wait(lock, [&] {
    return std::all_of(order_.turns_.begin(), order_.turns_.end(),
                       [&](const auto& other) { return other.first == this || other.second > agreed; });
  });
}

}  // namespace ddl::runtime
