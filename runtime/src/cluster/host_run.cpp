#include "runtime/src/cluster/host_run.h"

#include <array>
#include <span>

#include "runtime/src/collective/element.h"
#include "runtime/src/collective/reduce_kernel.h"

namespace ddl::runtime {

void SliceBuffers::merge(Merge how, const Combine& combine) {
  if (how == Merge::kReplace) {
    value.swap(received);
    return;
  }
  std::array<const std::byte*, 2> inputs{value.data(), received.data()};
  if (how == Merge::kPeerOnLeft) std::swap(inputs[0], inputs[1]);
  reduce_chunk({combine.dtype, combine.op}, inputs, merged.data(),
               value.size() / known_element_size(combine.dtype));
  value.swap(merged);
}

void HostRun::begin(Lane& lane, const HostSteps& steps, std::size_t unit_bytes, const Combine& combine,
                    std::uint64_t call, std::uint64_t chunk) {
  lane_ = &lane;
  steps_ = &steps;
  unit_bytes_ = unit_bytes;
  combine_ = combine;
  step_ = 0;
  is_out_of_step_ = false;
  sent_frame_.call = wanted_frame_.call = call;
  sent_frame_.chunk = wanted_frame_.chunk = chunk;
  if (!is_done()) post();
}

void HostRun::post() {
  const HostStep& step = (*steps_)[step_];
  const auto bytes_of = [this](int units) { return static_cast<std::size_t>(units) * unit_bytes_; };
  if (step.send.count > 0) {
    sent_frame_.bytes = bytes_of(step.send.count);
    lane_->post_send(step.host, std::as_bytes(std::span(&sent_frame_, 1)), pending_);
    lane_->post_send(step.host,
                     std::span(buffers_.value).subspan(bytes_of(step.send.first), bytes_of(step.send.count)),
                     pending_);
  }
  if (step.recv.count > 0) {
    wanted_frame_.bytes = bytes_of(step.recv.count);
    // A value that only takes the place of what was there goes there at once.
    std::vector<std::byte>& into = step.merge == Merge::kReplace ? buffers_.value : buffers_.received;
    lane_->post_receive(step.host, std::as_writable_bytes(std::span(&received_frame_, 1)), pending_);
    lane_->post_receive(
        step.host, std::span(into).subspan(bytes_of(step.recv.first), bytes_of(step.recv.count)), pending_);
  }
}

bool HostRun::advance() {
  while (!is_done() && pending_ == 0 && !is_out_of_step_) {
    const HostStep& step = (*steps_)[step_];
    if (step.recv.count > 0) {
      if (received_frame_ != wanted_frame_) {
        is_out_of_step_ = true;
        return false;
      }
      if (step.merge != Merge::kReplace) buffers_.merge(step.merge, combine_);
    }
    ++step_;
    if (!is_done()) post();
  }
  return is_done();
}

}  // namespace ddl::runtime
