// Numbers in memory of a GPU, for --device gpu.
#pragma once

#include <cstddef>
#include <memory>

namespace fit {

/// A place for numbers in memory of this rank's GPU. The vendor's library is loaded when it is needed, so that the program
/// is built and runs without one; a program that is made for GPUs would simply call cudaMalloc() or hipMalloc().
class GpuCopy {
 public:
  /// On the GPU of this number, of those that the rank sees. Throws std::runtime_error: there is none, and why.
  GpuCopy(std::size_t count, int gpu);
  ~GpuCopy();
  GpuCopy(const GpuCopy&) = delete;
  GpuCopy& operator=(const GpuCopy&) = delete;

  /// For libddl, which sees from the pointer where the memory lies. The host cannot read it.
  double* data() const { return data_; }
  /// Copies all numbers to the GPU, or from it, after what is on the default stream.
  void upload(const double* numbers);
  void download(double* numbers) const;

  class Vendor;

 private:
  std::unique_ptr<Vendor> vendor_;
  std::size_t bytes_;
  double* data_ = nullptr;
};

}  // namespace fit
